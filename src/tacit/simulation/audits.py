"""Audit a policy: play it many times on neighbouring tables and look at everything it lets out.

What an adversary sees is every released value and every decision. The audit itself knows nothing
of policies; this page turns a policy into something to run and an environment's table into
neighbouring pairs. All memory a repetition changes lies in one buffer, so that starting afresh is one
copy. The games are played by one compiled loop around the kernel that the simulator calls, and a short one
costs microseconds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import require
from tacit.compiled import address_of, call, kernel
from tacit.policy import AnyEnvironment, AnyPolicy, Environment, require_secure
from tacit.privacy import Neighbours, SearchResult, search
from tacit.simulation.run import require_match
from tacit.tapes import SECURE, SEEDED, Tape

__all__ = ["PolicyRun", "audit_policy", "neighbours_of"]

_ALIGNMENT = 64


@dataclass(frozen=True, kw_only=True)
class PolicyRun:
    """A policy as something to audit: ``run(table, runs, seed)`` returns one row a repetition.

    Parameters
    ----------
    policy : Policy
    environment : Environment
        Supplies the traces; the tables are the audit's inputs.
    horizon : int
        Rounds of one repetition.
    released : int
        How many released values to look at, from the first on.
    decisions : bool
        Look at the decisions as well.
    secure : bool
        Draw noise as in service, on integer grids, instead of seeded floating point.

    Examples
    --------
    >>> from tacit.arms import Bernoulli, KLUCBCF
    >>> environment = Bernoulli(means=(0.3, 0.7))
    >>> run = PolicyRun(policy=KLUCBCF(n_arms=2, epsilon=1.0), environment=environment, horizon=10)
    >>> run(environment.table(0, 0, 10), runs=5, seed=1).shape
    (5, 26)
    """

    policy: AnyPolicy
    environment: AnyEnvironment
    horizon: int
    released: int = 16
    decisions: bool = True
    secure: bool = False

    def __post_init__(self) -> None:
        require(self, "horizon", ">= 1", self.horizon >= 1, self.horizon)
        require(self, "released", ">= 0", self.released >= 0, self.released)
        looks = self.decisions or self.released > 0
        require(self, "released or decisions", "to look at", looks, self.released)
        if self.secure:
            require_secure(self.policy)

    @property
    def names(self) -> list[str]:
        """What the columns of the output are."""
        shape: tuple[int, ...] = (0,)
        if self.decisions:
            trace = self.environment.trace(self.horizon, np.array([self.horizon]), record=True)
            shape = _decisions(trace).shape
        decided = [f"decision {','.join(map(str, place))}" for place in np.ndindex(shape)]
        return [f"release {j}" for j in range(self.released)] + decided

    def __call__(self, table: Any, runs: int, seed: int) -> NDArray[np.float64]:
        """Play `runs` independent repetitions on `table`."""
        kind = SECURE if self.secure else SEEDED
        tape = Tape(
            kind,
            np.zeros(8, np.uint64),
            np.empty((0, 0, 0)),
            np.zeros(2, np.int64),
            np.zeros(self.released),
            np.empty((0, 3), np.int64),
        )
        rounds = np.array([self.horizon], np.int64)
        trace = self.environment.trace(self.horizon, rounds, record=self.decisions)
        (state, trace, tape), buffer = _in_one_buffer((self.policy.start(table), trace, tape))
        play, rest = self.policy.program(state, table, tape, trace)
        arguments = (*rest, 0, self.horizon)
        decided = _decisions(trace).reshape(-1)
        keys = np.random.default_rng(seed).integers(0, 2**64, (runs, 4), np.uint64)
        if not self.secure:
            keys[:, 2:] = 0
        outputs = np.empty((runs, self.released + decided.size))
        address = address_of(play, *arguments)
        _play_all(
            address, arguments, tape, np.tile(keys, 2), buffer, buffer.copy(), decided, outputs
        )
        return outputs


def audit_policy(
    policy: AnyPolicy,
    environment: AnyEnvironment,
    *,
    horizon: int,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Iterable[Neighbours] | None = None,
    runs: int = 100_000,
    alpha: float = 0.05,
    seed: int = 0,
    released: int = 16,
    decisions: bool = True,
    secure: bool = False,
) -> SearchResult:
    """Try to refute what a policy claims, on the worst neighbouring tables that can be found.

    Parameters
    ----------
    policy : Policy
    environment : Environment
        Of the same setting as the policy.
    horizon : int
        Rounds of one repetition; a few dozen are enough to expose a bad release.
    epsilon, delta : float, optional
        The claim. By default what ``policy.guarantee(horizon)`` states.
    neighbours : iterable of Neighbours, optional
        Pairs of tables. By default those of `neighbours_of` for the guarantee's unit.
    runs : int
        Repetitions on each table of the worst pair.
    alpha, seed
        As for :func:`tacit.privacy.audit`.
    released, decisions, secure
        What to look at and with which numerics, as in `PolicyRun`. Seeded noise is floating-point
        noise, whose low bits always tell; they are looked at only if `secure`.

    Returns
    -------
    SearchResult

    Examples
    --------
    >>> from tacit.arms import UCB1, Bernoulli, KLUCBCF
    >>> environment = Bernoulli(means=(0.3, 0.7))
    >>> private = KLUCBCF(n_arms=2, epsilon=1.0)
    >>> audit_policy(private, environment, horizon=10, runs=20_000).result.verdict
    'not refuted'
    >>> audit_policy(UCB1(n_arms=2), environment, horizon=10, runs=2_000, epsilon=1.0).result.verdict
    'refuted'
    """
    require_match(policy, environment, horizon)
    guarantee = policy.guarantee(horizon)
    claimed = guarantee.epsilon if epsilon is None else epsilon
    rule = "finite" if epsilon is not None else f"given, because {policy.name} claims no finite one"
    require("audit_policy", "epsilon", rule, math.isfinite(claimed), claimed)
    allowed = (guarantee.delta if epsilon is None else 0.0) if delta is None else delta
    pairs = neighbours
    if pairs is None:
        pairs = neighbours_of(environment, horizon, unit=guarantee.unit, seed=seed)
    run = PolicyRun(
        policy=policy,
        environment=environment,
        horizon=horizon,
        released=released,
        decisions=decisions,
        secure=secure,
    )
    return search(
        run,
        pairs,
        epsilon=claimed,
        delta=allowed,
        runs=runs,
        alpha=alpha,
        seed=seed,
        low_bits=secure,
        names=run.names,
    )


def neighbours_of(
    environment: AnyEnvironment,
    horizon: int,
    *,
    unit: str = "reward",
    seed: int = 0,
    limit: int = 18,
) -> list[Neighbours]:
    """Return pairs of tables that differ in one reward, one round or everything, by all they can.

    That is from 0 to 1, or over the range of rewards that the environment declares.

    Half of the pairs are the earliest there are, because what they change lasts longest; the others
    are spread over the entries of later rounds. The rest of the table is that of the
    environment, or, where a setting's tables can be recorded, all 0 or all 1.

    Parameters
    ----------
    environment : Environment
        Of the arms or the users setting, or of the agents setting with losses of their own.
    horizon : int
    unit : str
        ``"reward"``: one entry changes; in the agents setting the loss that agent 0 suffers in one
        round, whatever state it chose. ``"round"``: all entries of one round. ``"user"``: all
        entries, as if one person had provided them, in the arms setting; what agent 0 begins with
        where agents choose among options.
    seed : int
        Chooses the table.
    limit : int
        At most so many pairs.
    """
    if type(environment).neighbours is not Environment.neighbours:
        return environment.neighbours(unit, horizon, seed=seed, limit=limit)
    table = environment.table(seed, 0, horizon)
    if unit == "user" and hasattr(table, "edit_options"):
        return _adoptions(table)
    known = unit in ("reward", "round") or (unit == "user" and environment.setting == "arms")
    require("neighbours_of", "unit", "reward or round (else give the pairs)", known, unit)
    if unit == "user":
        _, (_, zeros), (_, ones) = _editing(table, environment.setting, horizon)[3]
        return [Neighbours(zeros, ones, "all rewards: 0 against 1")]
    rounds = sorted({min(horizon - 1, int(t)) for t in (0, 1, 2, 3, *np.geomspace(4, 1024, 9))})
    ends = environment.public_parameters(horizon).get("reward_range", (0.0, 1.0))
    return list(_pairs(table, environment.setting, horizon, unit, rounds, limit, ends))


def _adoptions(table: Any) -> list[Neighbours]:
    """Return tables in which agent 0 begins with an option, with another, or with none."""
    from tacit.dynamics import edit_adoption

    first, nothing = edit_adoption(table, 0, 0), edit_adoption(table, 0, -1)
    pairs = [Neighbours(first, nothing, "agent 0 begins with option 0 against none")]
    if table.qualities.size > 1:
        other = edit_adoption(table, 0, 1)
        pairs.append(Neighbours(first, other, "agent 0 begins with option 0 against option 1"))
    return pairs


def _pairs(
    table: Any,
    setting: str,
    horizon: int,
    unit: str,
    rounds: list[int],
    limit: int,
    ends: tuple[float, float],
) -> Iterator[Neighbours]:
    width, what, put, environments = _editing(table, setting, horizon)
    single = unit == "reward" and setting != "diffusion"
    whole = what if setting == "diffusion" else "all of it"
    changes = [[j] for j in range(width)] if single else [list(range(width))]
    places = list(itertools.product(rounds, environments, changes))
    early = min(limit // 2, len(places))
    later = min(limit, len(places)) - early
    chosen = [*range(early), *np.linspace(early, len(places) - 1, later, dtype=int)]
    for t, (words, environment), entries in map(places.__getitem__, chosen):
        name = f"{what} {entries[0]}" if single else whole
        left, right = (put(environment, [(t, j, end) for j in entries]) for end in ends)
        change = "{:g} against {:g}".format(*ends)
        yield Neighbours(left, right, f"round {t}, {name}: {change}{words}")


def _editing(table: Any, setting: str, horizon: int) -> tuple[int, str, Any, list[tuple[str, Any]]]:
    """Return how many entries a round has, their name, how to change them, and tables to do it in."""
    if setting == "arms":
        from tacit.arms import tables as arms

        width = table.means.shape[1]
        environments = [("", table)]
        for level in (0.0, 1.0):
            rewards = np.full((horizon, width), level)
            flat = table._replace(kind=arms.RECORDED, recorded=rewards)
            environments.append((f", all other rewards {level:g}", flat))
        return width, "arm", arms.edit_rewards, environments
    if setting == "users":
        from tacit.users import tables as users

        return table.n_shown, "slot", users.edit_rewards, [("", table)]

    from tacit.diffusion import tables as diffusion

    if not isinstance(table, diffusion.Table):
        raise ValueError("neighbours_of: this environment has no losses to change; give the pairs")

    def put(environment: Any, entries: Any) -> Any:
        return diffusion.edit_losses(environment, [(t, 0, j, value) for t, j, value in entries])

    return table.n_states, "the loss of agent 0", put, [("", table)]


def _decisions(trace: Any) -> NDArray[Any]:
    return np.asarray(trace.decisions)


@kernel
def _play_all(
    address: Any,
    arguments: Any,
    tape: Any,
    keys: Any,
    buffer: Any,
    fresh: Any,
    decided: Any,
    outputs: Any,
) -> None:
    """Play one game for each key; each begins with what `fresh` holds and fills a row."""
    m = tape.log.size
    for i in range(keys.shape[0]):
        _copy(fresh, buffer)
        _copy(keys[i], tape.key)
        call(address, arguments)
        _copy(tape.log, outputs[i, :m])
        _copy(decided, outputs[i, m:])


@kernel
def _copy(source: Any, target: Any) -> None:
    for j in range(target.size):
        target[j] = source[j]


def _in_one_buffer(tree: Any) -> tuple[Any, NDArray[np.uint64]]:
    """Return the same tuples with all their arrays moved into one buffer."""
    arrays: list[NDArray[Any]] = []
    _visit(tree, arrays.append)
    offsets = np.cumsum([0] + [-(-a.nbytes // _ALIGNMENT) * _ALIGNMENT for a in arrays])
    buffer = np.zeros(int(offsets[-1]) // 8, np.uint64)
    memory = buffer.view(np.uint8)
    places = iter(offsets.tolist())

    def move(array: NDArray[Any]) -> NDArray[Any]:
        start = next(places)
        flat = memory[start : start + array.nbytes].view(array.dtype)
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        moved = flat.reshape(array.shape, order="F" if fortran else "C")
        moved[...] = array
        return moved

    return _visit(tree, move), buffer


def _visit(tree: Any, change: Any) -> Any:
    if isinstance(tree, np.ndarray):
        return change(tree)
    if isinstance(tree, tuple):
        parts = [_visit(part, change) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return tree
