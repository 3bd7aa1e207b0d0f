"""Audit a policy: play it many times on neighbouring tables and look at everything it lets out.

What an adversary sees is every released value and every decision, whatever their number. The audit
itself knows nothing of policies, and this page knows nothing of settings: an environment names its
neighbouring tables, a policy is played on them, and the tape keeps what was released. All memory a
repetition changes lies in one buffer, so that starting afresh is one copy. The games are played by one
compiled loop around the kernel that the simulator calls, and a short one costs microseconds.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.arrays import in_one_buffer
from tacit.core.constraints import require
from tacit.core.kernels import address_of, call, kernel
from tacit.core.policy import AnyEnvironment, AnyPolicy, require_secure
from tacit.core.tapes import SECURE, SEEDED, Tape, seeded_tape
from tacit.privacy import NeighbouringPair, SearchResult, search
from tacit.simulation.run import require_match

_SHORTEST = 20
_LONGEST, _LONGEST_PLAIN = 2**17, 1280
_COLUMNS = 2**15
_PROBES = 4
_SHORT, _SHORT_PLAIN = 4_000, 64
_PAIRS, _PAIRS_PLAIN = 18, 128
_LIMIT = 3600.0
"""No audit begins that would take longer than this many seconds."""


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
        How many released values to look at, from the first on; one that does not come in a
        repetition is not-a-number.
    decisions : bool
        Look at the decisions as well.
    secure : bool
        Draw noise as in service, on integer grids, instead of seeded floating point.

    Examples
    --------
    >>> from tacit.arms import Bernoulli, KLUCBCF
    >>> environment = Bernoulli(means=(0.3, 0.7))
    >>> policy = KLUCBCF(n_arms=2, epsilon=1.0)
    >>> run = PolicyRun(policy=policy, environment=environment, horizon=10, released=16)
    >>> run(environment.table(0, 0, 10), runs=5, seed=1).shape
    (5, 26)
    """

    policy: AnyPolicy
    environment: AnyEnvironment
    horizon: int
    released: int
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
        keys = np.random.default_rng(seed).integers(0, 2**64, (runs, 4), np.uint64)
        if not self.secure:
            keys[:, 2:] = 0
        keys = np.tile(keys, 2)
        if not self.policy.compiled:
            return np.array([self._played(table, key) for key in keys])
        (state, trace, tape), buffer = in_one_buffer(
            (self.policy.start(table), self._trace(), new_tape(self.secure, self.released))
        )
        play, rest = self.policy.program(state, table, tape, trace)
        arguments = (*rest, 0, self.horizon)
        decided = _decisions(trace).reshape(-1)
        outputs = np.empty((runs, self.released + decided.size))
        address = address_of(play, *arguments)
        _play_all(address, arguments, tape, keys, buffer, buffer.copy(), decided, outputs)
        return outputs

    def _trace(self) -> Any:
        rounds = np.array([self.horizon], np.int64)
        return self.environment.trace(self.horizon, rounds, record=self.decisions)

    def _played(self, table: Any, key: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return what a policy in plain Python lets out in one repetition."""
        tape, trace = new_tape(self.secure, self.released), self._trace()
        tape.key[:] = key
        self.policy.play(self.policy.start(table), table, tape, trace, 0, self.horizon)
        return np.concatenate([tape.log, _decisions(trace).reshape(-1)])


def new_tape(secure: bool, released: int) -> Tape:
    """Return a tape without a key that keeps so many released values; what does not come is no number."""
    empty = np.empty((0, 0, 0)), np.zeros(2, np.int64), np.full(released, np.nan)
    kind = SECURE if secure else SEEDED
    return Tape(kind, np.zeros(8, np.uint64), *empty, np.empty((0, 3), np.int64))


def audit_policy(
    policy: AnyPolicy,
    environment: AnyEnvironment,
    *,
    horizon: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Iterable[NeighbouringPair] | None = None,
    pairs: int | None = None,
    runs: int = 100_000,
    alpha: float = 0.05,
    seed: int = 0,
    released: int | None = None,
    decisions: bool = True,
    secure: bool = False,
) -> SearchResult:
    """Try to refute what a policy claims, on the worst neighbouring tables that can be found.

    Parameters
    ----------
    policy : Policy
    environment : Environment
        Of the same setting as the policy.
    horizon : int, optional
        Rounds of one repetition; by default as many as pass before something is released, and 20 at
        least. A few dozen are enough to expose a bad release.
    epsilon, delta : float, optional
        The claim. By default what ``policy.guarantee(horizon)`` states.
    neighbours : iterable of NeighbouringPair, optional
        Pairs of tables. By default those of `neighbours_of` for the guarantee's unit.
    pairs : int, optional
        How many of these; 18 by default, and 128 for a policy in plain Python, whose mistakes may lie in
        any round. Of many pairs the worst is found in short audits and tried with fresh runs, so that
        their number does not raise the chance of refuting a true claim.
    runs : int
        Repetitions on each table of the worst pair. So many that the audit would take more than an
        hour are refused before they are played.
    alpha, seed
        As for :func:`tacit.privacy.audit`.
    released : int, optional
        How many released values to look at; by default all of them.
    decisions, secure
        What else to look at and with which numerics, as in `PolicyRun`. Seeded noise is floating-point
        noise, whose low bits always tell; they are looked at only if `secure`.

    Returns
    -------
    SearchResult
        With the verdict ``"nothing was released"`` if no noise was drawn in any repetition and
        nothing told the tables apart.

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
    if horizon is None:
        horizon = releasing_horizon(lambda _: policy, environment, seed=seed)
    require_match(policy, environment, horizon)
    guarantee = policy.guarantee(horizon)
    claimed = guarantee.epsilon if epsilon is None else epsilon
    rule = "finite" if epsilon is not None else f"given, because {policy.name} claims no finite one"
    require("audit_policy", "epsilon", rule, math.isfinite(claimed), claimed)
    allowed = (guarantee.delta if epsilon is None else 0.0) if delta is None else delta
    rule = ">= 1, and not with neighbours"
    alone = pairs is None or (pairs >= 1 and neighbours is None)
    require("audit_policy", "pairs", rule, alone, pairs)
    among = None
    if neighbours is None:
        limit = pairs or (_PAIRS if policy.compiled else _PAIRS_PLAIN)
        neighbours = neighbours_of(
            environment, horizon, unit=guarantee.unit, seed=seed, limit=limit
        )
        among = environment.count_pairs(guarantee.unit, horizon)
    known = list(neighbours)
    drawn = _noise_drawn(policy, environment, horizon, known, seed)
    run = PolicyRun(
        policy=policy,
        environment=environment,
        horizon=horizon,
        released=min(drawn + drawn // 4, _COLUMNS) if released is None else released,
        decisions=decisions,
        secure=secure,
    )
    _require_an_end(run, known, runs, seed)
    found = search(
        run,
        known,
        epsilon=claimed,
        delta=allowed,
        runs=runs,
        alpha=alpha,
        seed=seed,
        short=_short(policy),
        keep=_keep(policy),
        low_bits=secure,
        names=run.names,
    )
    # A policy in plain Python may draw its noise itself: no draws do not mean that nothing is released.
    silent = drawn == 0 and policy.mechanisms is not None
    overlooked = max(0, drawn - run.released)
    result = dataclasses.replace(found.result, silent=silent, overlooked=overlooked)
    return dataclasses.replace(found, result=result, among=among)


def neighbours_of(
    environment: AnyEnvironment,
    horizon: int,
    *,
    unit: str = "reward",
    seed: int = 0,
    limit: int = _PAIRS,
) -> list[NeighbouringPair]:
    """Return pairs of tables that differ in all that one `unit` contains, the most telling first.

    Parameters
    ----------
    environment : Environment
    horizon : int
    unit : str
        What a guarantee protects, such as ``"reward"``, ``"round"`` or ``"user"``.
    seed : int
        Chooses the table.
    limit : int
        At most so many pairs.
    """
    return list(environment.neighbours(unit, horizon, seed=seed, limit=limit))


def releasing_horizon(
    build: Callable[[int], AnyPolicy], environment: AnyEnvironment, *, seed: int = 0
) -> int:
    """Return how many rounds to play so that something is released, 20 at least.

    Longer and longer games are played until noise is drawn, 131,072 rounds at most (1,280 in plain
    Python); the answer is the round of the first draw in the slowest of a few games, and one more.
    A policy without noise is not played.

    Parameters
    ----------
    build : callable
        ``build(horizon)`` returns the policy for so many rounds.
    environment : Environment
    seed : int
        Chooses the table and the draws.

    Examples
    --------
    >>> from tacit.arms import GAP, Bernoulli
    >>> environment = Bernoulli(means=(0.1, 0.9))
    >>> releasing_horizon(lambda h: GAP(n_arms=2, epsilon=1.0, horizon=h), environment) > 20
    True
    """
    horizon = _SHORTEST
    while True:
        policy, table = build(horizon), environment.table(seed, 0, horizon)
        require_match(policy, environment, horizon)
        if policy.mechanisms == ():
            return _SHORTEST
        firsts = []
        for game in range(_PROBES):
            tape = seeded_tape(seed, game, positions=1)
            _play_once(policy, environment, table, tape, horizon)
            firsts.append(int(tape.positions[0, 0]))
        if min(firsts) >= 0:
            return max(_SHORTEST, max(firsts) + 1)
        if horizon >= (_LONGEST if policy.compiled else _LONGEST_PLAIN):
            return _SHORTEST
        horizon = min(4 * horizon, _LONGEST)


def _play_once(
    policy: AnyPolicy, environment: AnyEnvironment, table: Any, tape: Tape, horizon: int
) -> None:
    trace = environment.trace(horizon, np.array([horizon]), record=False)
    policy.play(policy.start(table), table, tape, trace, 0, horizon)


def _noise_drawn(
    policy: AnyPolicy,
    environment: AnyEnvironment,
    horizon: int,
    pairs: Sequence[NeighbouringPair],
    seed: int,
) -> int:
    """Return how many draws of noise a game takes, at most, in a few games on every table."""
    most = 0
    for pair in pairs:
        for table in (pair.left, pair.right):
            for game in range(_PROBES):
                tape = seeded_tape(seed, game)
                _play_once(policy, environment, table, tape, horizon)
                most = max(most, int(tape.reads[1]))
    return most


def _require_an_end(
    run: PolicyRun, pairs: Sequence[NeighbouringPair], runs: int, seed: int
) -> None:
    """Refuse an audit that would take more than an hour, before it begins."""
    require("audit_policy", "neighbours", "not empty", bool(pairs), len(pairs))
    run(pairs[0].left, 2, seed)
    started = time.perf_counter()
    run(pairs[0].left, 32, seed)
    game = (time.perf_counter() - started) / 32
    turns = math.ceil(math.log(len(pairs), _keep(run.policy)))
    games = 2 * (runs + turns * len(pairs) * min(runs, _short(run.policy)))
    rule = f"at most {max(1, int(_LIMIT / game / 2)):,}, which end within an hour"
    require("audit_policy", "runs", rule, games * game <= _LIMIT, runs)


def _short(policy: AnyPolicy) -> int:
    """Return how many games the first, shortest audits get; in plain Python each takes its time."""
    return _SHORT if policy.compiled else _SHORT_PLAIN


def _keep(policy: AnyPolicy) -> int:
    """Return how fast the search narrows; games in plain Python are too slow for many short audits."""
    return 2 if policy.compiled else 4


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
