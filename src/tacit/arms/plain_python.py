"""Policies and environments in plain Python: no numba, no dataclasses, no tapes; slower, equal otherwise.

A policy is any class with ``select()``, which returns an arm, and ``update(arm, reward)``. One object plays
one repetition. Its constructor takes what it needs of ``n_arms``, ``horizon`` and ``rng`` (a NumPy generator,
its own in every repetition), and parameters of its own. An environment is any function
``reward(t, arm, rng)``.

A round costs some microseconds instead of some nanoseconds, and nothing is known about privacy unless the
class has a ``guarantee(horizon)``. Whatever such a class lets out besides its decisions it appends to a
list ``released``, numbers which the audit then looks at.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, cast

import numpy as np

from tacit.arms.environments.base import ArmsEnvironment, Schedule, make_table
from tacit.arms.policy import ArmsPolicy
from tacit.arms.table import RECORDED, Table, reward
from tacit.arms.trace import record
from tacit.core.constraints import Count, check, require
from tacit.core.generator import key_of
from tacit.core.policy import Program, require_secure
from tacit.core.tapes import NOISE, SECURE, Tape, drawn, released
from tacit.privacy import Guarantee

_GIVEN = ("n_arms", "horizon", "rng")
_REWARD_STREAM = 9
_LARGEST = 200_000_000


@dataclass(frozen=True, kw_only=True)
class PythonPolicy(ArmsPolicy[Any]):
    """A policy that a plain Python class plays; made by `python_policy`.

    Guarantee: what the class says in ``guarantee(horizon)``; none if it says nothing.

    Parameters
    ----------
    n_arms : int
        Number of arms K.
    horizon : int, optional
        Number of rounds T, for classes that want it.

    Examples
    --------
    >>> import tacit
    >>> class Stubborn:
    ...     def select(self):
    ...         return 1
    ...     def update(self, arm, reward):
    ...         pass
    >>> found = tacit.compare([Stubborn], "bernoulli:means=[0.3,0.7]", horizon=100, repetitions=2)
    >>> found["Stubborn"].final("regret")
    array([0., 0.])
    """

    summary: ClassVar[str] = "a policy in plain Python"
    compiled: ClassVar[bool] = False
    player: ClassVar[type[Any]]
    """The plain class."""

    n_arms: Count
    horizon: int | None = None

    def __post_init__(self) -> None:
        check(self)

    def __reduce__(self) -> Any:
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return _rebuilt, (self.player, values)

    @property
    def mechanisms(self) -> None:
        """Nobody knows which noise a plain class adds."""
        return

    @property
    def params(self) -> Any:
        """A plain class has no numbers for kernels."""
        return ()

    def guarantee(self, horizon: int) -> Guarantee:
        """Return what the class says, or that nothing is protected."""
        said = getattr(self.player, "guarantee", None)
        if said is None:
            return Guarantee.none(f"{type(self).__name__} is plain Python and claims nothing")
        found: Guarantee = self.play_with(np.random.default_rng(0)).guarantee(horizon)
        return found

    def play_with(self, rng: np.random.Generator) -> Any:
        """Return a fresh object of the plain class."""
        known = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        known["rng"] = rng
        wanted = inspect.signature(self.player).parameters
        return self.player(**{name: known[name] for name in wanted if name in known})

    def start(self, table: Any = None) -> list[Any]:
        """Return an empty list, for the object, made when its tape is known, and what it released."""
        return []

    def program(self, state: Any, table: Any, tape: Tape, trace: Any) -> Program:
        """Return the loop in Python and its arguments."""
        if tape.kind == SECURE:
            require_secure(self)
        return _play, (self, state, table, tape, trace)

    def select(self, state: Any, tape: Tape, t: int, eligible: Any) -> int:
        """Return the arm that the object selects; it must be eligible."""
        arm = int(self._player(state, tape).select())
        rule = f"an arm among {np.asarray(eligible).tolist()}"
        require(self, "select to return", rule, arm in eligible, arm)
        return arm

    def update(self, state: Any, tape: Tape, t: int, arm: int, reward: float) -> None:
        """Hand the reward to the object."""
        self._player(state, tape).update(arm, reward)
        _note_released(state, tape, t)

    def _player(self, state: list[Any], tape: Tape) -> Any:
        if not state:
            state[:] = self.play_with(np.random.default_rng([int(word) for word in tape.key])), 0
        return state[0]


def _play(
    policy: PythonPolicy, state: Any, table: Any, tape: Any, trace: Any, first: int, last: int
) -> None:
    player = policy._player(state, tape)
    K = policy.n_arms
    for t in range(first, last):
        arm = int(player.select())
        require(policy, "select to return", f"an arm in 0..{K - 1}", 0 <= arm < K, arm)
        value = float(reward(table, t, arm))
        record(table, trace, t, arm, value)
        player.update(arm, value)
        _note_released(state, tape, t)


def _note_released(state: Any, tape: Tape, t: int) -> None:
    """Log on the tape what the object let out since the last time."""
    values = getattr(state[0], "released", ())
    for index, value in enumerate(values[state[1] :]):
        drawn(tape, t, index, NOISE, 1)
        released(tape, float(value))
    state[1] = len(values)


def _rebuilt(player: Any, values: Mapping[str, Any]) -> PythonPolicy:
    return python_policy(player)(**values)


@cache
def python_policy(player: Any) -> type[PythonPolicy]:
    """Return the policy class that a plain class plays; parameters are those of its constructor.

    Examples
    --------
    >>> class Lucky:
    ...     def __init__(self, rng, n_arms, luck: float = 0.5):
    ...         self.rng, self.n_arms = rng, n_arms
    ...     def select(self):
    ...         return self.rng.integers(self.n_arms)
    ...     def update(self, arm, reward):
    ...         pass
    >>> python_policy(Lucky)(n_arms=3)
    Lucky(n_arms=3, horizon=None, luck=0.5)
    """
    hints = typing.get_type_hints(player.__init__) if "__init__" in vars(player) else {}
    fields: list[Any] = []
    for name, parameter in inspect.signature(player).parameters.items():
        if name in _GIVEN or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        hint = hints.get(name, Any)
        if parameter.default is parameter.empty:
            fields.append((name, hint))
        else:
            fields.append((name, hint, dataclasses.field(default=parameter.default)))
    first_line = (player.__dict__.get("__doc__") or "").strip().partition("\n")[0]
    made = dataclasses.make_dataclass(
        player.__name__,
        fields,
        bases=(PythonPolicy,),
        frozen=True,
        kw_only=True,
        namespace={
            "name": getattr(player, "name", player.__name__),
            "summary": first_line or PythonPolicy.summary,
            "player": player,
            "__doc__": player.__doc__ or PythonPolicy.__doc__,
        },
    )
    made.__module__, made.__qualname__ = player.__module__, player.__qualname__
    return cast(type[PythonPolicy], made)


def from_river(policy: Any) -> type[PythonPolicy]:
    """Return a policy class that plays a bandit policy of the library river.

    Every repetition plays a fresh clone; its seed, if it has one, is drawn from the repetition's tape.

    Parameters
    ----------
    policy : river.bandit.base.Policy
        Such as ``river.bandit.EpsilonGreedy(epsilon=0.1)``.
    """

    class River:
        def __init__(self, n_arms: int, rng: np.random.Generator) -> None:
            seeded = "seed" in inspect.signature(type(policy)).parameters
            changes = {"seed": int(rng.integers(2**31))} if seeded else {}
            self.player = policy.clone(changes)
            self.arms = list(range(n_arms))

        def select(self) -> int:
            return int(self.player.pull(self.arms))

        def update(self, arm: int, reward: float) -> None:
            self.player.update(arm, reward)

    River.__name__ = River.__qualname__ = f"river-{type(policy).__name__}"
    River.__doc__ = f"{type(policy).__name__} of the library river"
    return python_policy(River)


@dataclass(frozen=True, kw_only=True)
class RewardFunction(ArmsEnvironment):
    """Rewards that a plain Python function gives.

    The function is asked for every arm in every round, so that all policies meet the same table; that takes
    rounds x arms calls for each repetition. Regret is against the best fixed arm in hindsight, as for
    recorded rewards.

    Parameters
    ----------
    function : callable
        ``function(t, arm, rng)`` returns a reward in [0, 1]; `rng` is a NumPy generator, its own in
        every repetition.
    n_arms : int, default 2
        Number of arms K.

    Examples
    --------
    >>> import tacit
    >>> from tacit.arms import RewardFunction
    >>> def tide(t, arm, rng):
    ...     return float(rng.random() < (0.8 if (t // 100) % 2 == arm else 0.2))
    >>> environment = RewardFunction(function=tide, n_arms=2)
    >>> tacit.compare(["ucb1"], environment, horizon=200, repetitions=2).shown[0].label
    'ucb1'
    """

    name: ClassVar[str] = "reward-function"
    summary: ClassVar[str] = "rewards of a plain Python function of round, arm and a generator"
    rewards: ClassVar[str] = "recorded"
    spread: ClassVar[float] = 1.0

    function: Callable[[int, int, np.random.Generator], float]
    n_arms: Count = 2

    def __post_init__(self) -> None:
        check(self)
        require(self, "function", "callable", callable(self.function), self.function)

    def __repr__(self) -> str:
        function = getattr(self.function, "__name__", self.function)
        return f"RewardFunction(function={function}, n_arms={self.n_arms})"

    def schedule(self, horizon: int, rng: np.random.Generator) -> Schedule:
        """Return that means are unknown."""
        return Schedule(np.zeros(1, np.int64), np.full((1, self.n_arms), 0.5))

    def table(self, seed: int, repetition: int, horizon: int) -> Table:
        """Return the table of one repetition: what the function says, in order."""
        K = self.n_arms
        fits = horizon * K <= _LARGEST
        require(self, "horizon", f"<= {_LARGEST // K:,} for {K} arms", fits, horizon)
        rng = np.random.Generator(
            np.random.Philox(key=key_of(seed, repetition, stream=_REWARD_STREAM))
        )
        rewards = np.empty((horizon, K))
        for t in range(horizon):
            for arm in range(K):
                rewards[t, arm] = self.function(t, arm, rng)
        inside = (rewards >= 0.0) & (rewards <= 1.0)
        if not inside.all():
            t, arm = np.argwhere(~inside)[0]
            name = getattr(self.function, "__name__", "function")
            raise ValueError(
                f"{name}: expected rewards in [0, 1], got {rewards[t, arm]} in round {t}, arm {arm}"
            )
        return make_table(
            kind=RECORDED,
            key=np.zeros(2, np.uint64),
            schedule=Schedule(np.zeros(1, np.int64), rewards.mean(axis=0)[None]),
            spread=1.0,
            recorded=rewards,
            champion=int(rewards.mean(axis=0).argmax()),
        )


@cache
def _function_environment(function: Any) -> type[RewardFunction]:
    made = dataclasses.make_dataclass(
        function.__name__,
        [("function", Any, dataclasses.field(default=function))],
        bases=(RewardFunction,),
        frozen=True,
        kw_only=True,
        namespace={
            "name": function.__name__,
            "summary": (function.__doc__ or RewardFunction.summary).strip().partition("\n")[0],
            "__reduce__": lambda self: (_remade, (function, self.n_arms)),
            "__doc__": RewardFunction.__doc__,
        },
    )
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return cast(type[RewardFunction], made)


def _remade(function: Any, n_arms: int) -> RewardFunction:
    return _function_environment(function)(n_arms=n_arms, function=function)


def wrap_plain_python(what: str, thing: Any) -> type[Any] | None:
    """Return the policy or environment class of a plain Python class or function, if it is one."""
    if what == "policy" and isinstance(thing, type):
        if callable(getattr(thing, "select", None)) and callable(getattr(thing, "update", None)):
            return python_policy(thing)
    elif what == "environment" and inspect.isfunction(thing):
        return _function_environment(thing)
    return None
