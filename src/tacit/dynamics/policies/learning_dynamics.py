"""Learning dynamics: perturb an adoption, spread it by random walks, sample, adopt.

Every agent remembers one thing, the option it adopts. Each round it tells a noisy version of that to
random others, picks an option by how popular it seems from what it hears, and adopts it more readily
if the option has just been good. Tao et al. 2022 (paper 001), Section 4, stages 1 to 4.

Departures. Bits are flipped once a round and the perturbed vector is copied to the tokens: flipping
each token anew would cost the budget thousands of times over. Published, an agent without an
adoption stays silent, and silence is told from speech with certainty; corrected, it perturbs and
sends the zero vector, and the estimate (7) is of D_j / N, which normalising (8) puts right. An agent
that hears nothing, or estimates zero everywhere, chooses uniformly. Asynchronous agents, delays and
losses are the paper's future work: an agent wakes with some probability and otherwise keeps its
adoption and says nothing; a token travels after a uniform delay and is lost with some probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import Constraint, Count, Probability, Whole, check, one_of, require
from tacit.core.kernels import kernel
from tacit.core.policy import Policy, Program, require_secure
from tacit.core.tapes import RECORDED, SECURE, Tape
from tacit.dynamics.algorithm import Params, State, run
from tacit.dynamics.dissemination import CROWD, DEALT, ENDPOINTS, MOMENTS, TOKENS
from tacit.dynamics.dissemination.crowd import run_crowd
from tacit.dynamics.table import Table, first_adoptions, first_counts
from tacit.dynamics.trace import Trace
from tacit.dynamics.tuning import (
    ENCODINGS,
    Encoder,
    encoder,
    levels_of,
    message_variance,
    recommend,
)
from tacit.graphs import Graph
from tacit.graphs.walks import Ends, Walk
from tacit.privacy import Claim, Guarantee, Mechanism, Release, compose, least_private
from tacit.privacy.mechanisms import HIGHEST_EPSILON, LOWEST_EPSILON

_ENGINES = {"tokens": TOKENS, "endpoints": ENDPOINTS, "mixed": MOMENTS, "crowd": CROWD}
#: Up to so many tokens each, `mixed` deals them out one by one.
_FEW = 64
#: At most so many levels of epsilon where what an agent receives is drawn level by level.
_LEVELS = 64
#: Up to so many agents, `mixed` perturbs them one by one, so that an audit sees their messages.
_FACES = 1000

_Options = Annotated[
    int, Constraint("in 1..63", lambda v: 1 <= v <= 63, {"minimum": 1, "maximum": 63})
]
_Hops = Annotated[
    int, Constraint("in 1..65535", lambda v: 1 <= v <= 65535, {"minimum": 1, "maximum": 65535})
]
_LEVEL = Constraint(
    f"between {LOWEST_EPSILON:g} and {HIGHEST_EPSILON:g}, or infinite",
    lambda v: LOWEST_EPSILON <= v <= HIGHEST_EPSILON or v == math.inf,
    {"minimum": LOWEST_EPSILON},
)
_Level = Annotated[float, _LEVEL]
_Beta = Annotated[
    float, Constraint("in [0.5, 1]", lambda v: 0.5 <= v <= 1, {"minimum": 0.5, "maximum": 1})
]
_Below1 = Annotated[
    float, Constraint("in [0, 1)", lambda v: 0 <= v < 1, {"minimum": 0, "exclusiveMaximum": 1})
]
_Above0 = Annotated[
    float, Constraint("in (0, 1]", lambda v: 0 < v <= 1, {"exclusiveMinimum": 0, "maximum": 1})
]


@dataclass(frozen=True, kw_only=True)
class LearningDynamics(Policy[Table, State, Trace]):
    """Agents that adopt what is popular and good, and tell each other through noise.

    Guarantee: corrected, an agent's message of a round is epsilon-private, whatever it adopts or
    if it adopts nothing, and its whole history of R rounds composes. Published: none, since an
    agent without an adoption is silent. Memoised: none for the history, since a changed message
    shows that the adoption changed; see `value_guarantee`.

    Parameters
    ----------
    n_options : int
        Number of options M, at most 63.
    n_agents : int
        Number of agents N.
    epsilon : float, or several
        Privacy of one message; infinity perturbs nothing. Of several agents have one each in turn, agent
        a the one at a modulo their number: as many as agents are one for each. It is public who has which,
        so that every message is undone by its own sender's noise, and counts the more the less it has.
    delta : float, default 0
        The delta at which `guarantee` composes the rounds; 0 adds the epsilons up.
    beta : float, optional
        Probability to adopt an option that was good, and not to adopt one that was bad; by default
        what `recommend` says, and the paper's 0.505 if published.
    mu : float, optional
        Probability to choose uniformly; by default likewise, and the paper's 6.7e-5 if published.
    tokens : int, optional
        Tokens an agent sends a round; by default the paper's h g(N) = 485 ln^2 N.
    walk_length : int, default 3 ln N
        Hops of a token.
    engine : {"mixed", "crowd", "endpoints", "tokens"}
        How dissemination is simulated. The last two need a network; the first two assume that
        walks are long enough to end anywhere with equal probability.
    variant : {"corrected", "published"}
        Whether agents without an adoption send too.
    encoding : {"plain", "optimised", "subset", "least"}
        Unary encoding with one flip probability, as in the paper, or with the least variance; a
        subset of the options and none (k-ary response where one symbol is best); or which of them
        has the least variance at this epsilon and number of options.
    smoothed : bool, default False
        Whether an agent remembers its estimates: it then follows Q <- (1 - rho) Q + rho times the
        newest, not yet clipped. This costs no privacy; it averages the noise of many rounds.
    rho : float, optional
        Weight of the newest estimate; by default what `recommend` says.
    memoised : bool
        Repeat the same perturbed vector until the adoption changes.
    wake_prob, loss : float
        Probability that an agent is awake in a round, and that a token is lost.
    delay : int
        A token travels after 0 to `delay` rounds, uniformly.
    sample_pairs : int
        How many pairs of agents a crowd averages its choice over.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.dynamics import LearningDynamics, SocialOptions
    >>> from tacit.core.tapes import seeded_tape
    >>> environment = SocialOptions(qualities=(0.9, 0.5, 0.1), n_agents=100_000)
    >>> policy = LearningDynamics(
    ...     n_options=3, n_agents=100_000, epsilon=1.0, engine="crowd"
    ... )
    >>> table, trace = environment.table(0, 0, 500), environment.trace(500, np.array([500]))
    >>> policy.play(policy.start(table), table, seeded_tape(0), trace, 0, 500)
    >>> bool(trace.measures[0, 0] < 0.1)
    True

    References
    ----------
    Tao, Chen, Li, Yu, Yu, Sheng. A distributed privacy-preserving learning dynamics in general
    social networks. 2022.
    """

    name: ClassVar[str] = "learning-dynamics"
    setting: ClassVar[str] = "dynamics"
    example_environment: ClassVar[str] = "social-options:qualities=[0.9,0.5,0.1],n_agents=100"
    summary: ClassVar[str] = "perturb an adoption, spread it by random walks, sample, adopt"
    protects: ClassVar[str] = "each message; a history composes (published: nothing)"
    paper: ClassVar[str] = "001, Section 4"

    n_options: _Options
    n_agents: Count
    epsilon: _Level | tuple[_Level, ...]
    beta: _Beta | None = None
    mu: Probability | None = None
    tokens: Count | None = None
    delta: _Below1 = 0.0
    walk_length: _Hops | None = None
    engine: Annotated[str, one_of(*_ENGINES)] = "mixed"
    variant: Annotated[str, one_of("corrected", "published")] = "corrected"
    encoding: Annotated[str, one_of(*ENCODINGS)] = "plain"
    smoothed: bool = False
    rho: _Above0 | None = None
    memoised: bool = False
    wake_prob: _Above0 = 1.0
    loss: _Below1 = 0.0
    delay: Whole = 0
    sample_pairs: Count = 64

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """What perturbs an adoption."""
        held = dict.fromkeys(each.mechanism for each in self._encoders)
        return tuple(each for each in held if each is not None)

    @property
    def levels(self) -> tuple[float, ...]:
        """The epsilons that agents have in turn; of more than there are agents, the first."""
        return levels_of(self.epsilon)[: self.n_agents]

    @cached_property
    def _encoders(self) -> tuple[Encoder, ...]:
        return tuple(encoder(each, self.n_options, self.encoding) for each in self.levels)

    @property
    def secure(self) -> bool:
        """Whether all its noise has an exact sampler: not where only counts are perturbed."""
        return super().secure and self.params.each

    def __post_init__(self) -> None:
        check(self)
        if isinstance(self.epsilon, Sequence):
            object.__setattr__(self, "epsilon", tuple(float(each) for each in self.epsilon))
        known = all(_LEVEL.holds(each) for each in self.levels)
        require(self, "epsilon", _LEVEL.words, known, self.epsilon)
        require(self, "epsilon", "one, or several in turn", len(self.levels) > 0, self.epsilon)
        used = self.smoothed or self.rho is None
        require(self, "rho", "left out unless smoothed", used, self.rho)
        speaks = self.encoding in ("plain", "optimised") or self.variant == "corrected"
        require(self, "encoding", "plain or optimised if published", speaks, self.encoding)
        subsets = any(each.size > 0 for each in self._encoders)
        enough = _FACES * len(self.levels)
        many = self.engine != "crowd" or not subsets or self.n_agents >= enough
        rule = f">= {enough} for a crowd that sends subsets, whose counts are rounded normals"
        require(self, "n_agents", rule, many, self.n_agents)
        few = len(self.levels) <= _LEVELS or self.params.engine < MOMENTS
        rule = f"at most {_LEVELS} in turn for a crowd, and for mixed above {_FEW} tokens"
        require(self, "epsilon", rule, few, f"{len(self.levels)} of them")
        faceless = self.engine == "crowd" and self.memoised
        require(self, "memoised", "False for a crowd, which has no members", not faceless, True)

    @property
    def release(self) -> Release:
        """What an agent's message of one round reveals; of several levels, the most that one does."""
        return self._release(None)

    def _level(self, agent: int | None) -> float:
        """Return the epsilon of an agent's message; without one, the largest."""
        if agent is None:
            return max(self.levels)
        inside = 0 <= agent < self.n_agents
        require(self, "agent", f"in 0..{self.n_agents - 1}", inside, agent)
        return self.levels[agent % len(self.levels)]

    def _release(self, agent: int | None) -> Release:
        """Return what an agent's message reveals, or the most that anybody's does.

        Told in one way, a smaller epsilon is the larger one with more noise. But subsets of several
        sizes are several ways: there who has the smaller epsilon may lose more, at a delta.
        """
        if agent is not None:
            mechanism = self._encoders[agent % len(self.levels)].mechanism
            assert mechanism is not None
            return mechanism.release
        ways: dict[Any, Release] = {}
        for _, coding in sorted(zip(self.levels, self._encoders, strict=True), key=itemgetter(0)):
            if coding.mechanism is not None:
                way = coding.size, getattr(coding.mechanism, "optimised", False)
                ways[way] = coding.mechanism.release
        return least_private(ways.values())

    def _whose(self, agent: int | None) -> str:
        """Say whose guarantee it is where agents have different ones."""
        if agent is not None or len(self.levels) == 1:
            return ""
        least, most = min(self.levels), max(self.levels)
        return (
            f"A message of an agent has an epsilon from {least:g} to {most:g}, and this holds for all of "
            "them; for an agent's own ask with agent=."
        )

    def message_guarantee(self, *, agent: int | None = None) -> Guarantee:
        """Return what is protected of one adoption: it is told once, in one message.

        Parameters
        ----------
        agent : int, optional
            Whose; by default anybody's.
        """
        silent = self.variant == "published"
        level = self._level(agent)
        if math.isinf(level):
            who = "Nothing is perturbed" if len(set(self.levels)) == 1 else "Some perturb nothing"
            return Guarantee.none(f"{who}.", unit="message", trust="local")
        claim = Claim(
            epsilon=level,
            unit="message",
            trust="local",
            span="message",
            holds=not silent,
            why="an agent without an adoption is silent, which anybody can see"
            if silent
            else "agents without an adoption perturb and send zeros, and a bit more or less "
            "costs at most epsilon",
        )
        scope: dict[str, Any] = {"unit": "message", "trust": "local", "claim": claim}
        if silent:
            why = "Silence and speech are told apart with certainty: delta is 1 at every epsilon."
            return Guarantee.none(why, span="message", **scope)
        scope["not_protected"] = ("sending", "others", "graph")
        scope["note"] = self._whose(agent)
        return compose([(self._release(agent), 1)], span="message", basis="theorem", **scope)

    def guarantee(self, horizon: int, *, agent: int | None = None) -> Guarantee:
        """Return what is protected of an agent's whole history of `horizon` rounds.

        Parameters
        ----------
        horizon : int
        agent : int, optional
            Whose; by default anybody's.
        """
        one = self.message_guarantee(agent=agent)
        scope: dict[str, Any] = {"unit": "agent", "trust": "local", "span": "run"}
        if not one.private:
            return Guarantee.none(one.note, claim=one.claim, **scope)
        if self.memoised:
            why = (
                "A message that changes shows that the adoption changed. What it changed to is "
                "protected: see value_guarantee."
            )
            return Guarantee.none(why, claim=one.claim, **scope)
        scope["not_protected"] = ("sending", "graph")
        scope["note"] = self._whose(agent)
        releases = [(self._release(agent), horizon)]
        return compose(releases, delta=self.delta, claim=one.claim, **scope)

    def value_guarantee(self, changes: int) -> Guarantee:
        """Return what a memoised agent's history keeps if the times of its changes are public.

        Parameters
        ----------
        changes : int
            How often the adoption took a new value, the first time included.
        """
        require(self, "memoised", "True", self.memoised, self.memoised)
        require(self, "changes", ">= 1", changes >= 1, changes)
        note = f"Between histories with the same {changes} times of change, which anybody sees."
        note = f"{note} {self._whose(None)}".rstrip()
        one = self.message_guarantee()
        if not one.private:
            return self.guarantee(changes)
        return compose(
            [(self.release, changes)],
            delta=self.delta,
            unit="agent",
            trust="local",
            span="run",
            note=note,
            not_protected=("sending", "graph", "the times at which the adoption changes"),
            claim=one.claim,
        )

    @property
    def hops(self) -> int:
        """The walk length in use."""
        return self.walk_length or max(1, math.ceil(3 * math.log(self.n_agents)))

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        tokens = self.tokens or max(1, math.ceil(485 * math.log(self.n_agents) ** 2))
        advice = recommend(
            n_agents=self.n_agents,
            n_options=self.n_options,
            epsilon=self.epsilon,
            tokens=tokens,
            variant=self.variant,
            encoding=self.encoding,
            smoothed=self.smoothed,
        )
        beta, mu = advice.beta, advice.mu
        if self.variant == "published":
            beta, mu = 0.505, 6.7e-5
        codings = self._encoders
        p, q = (np.array([getattr(each, name) for each in codings]) for name in "pq")
        spread = [message_variance(each, self.n_options, self.variant) for each in codings]
        engine = _ENGINES[self.engine]
        if engine == MOMENTS and tokens <= _FEW:
            engine = DEALT
        return Params(
            engine=engine,
            each=engine <= DEALT
            or self.memoised
            or (engine == MOMENTS and self.n_agents <= _FACES),
            silent=self.variant == "published",
            memoised=self.memoised,
            p=p,
            q=q,
            subset=np.array([each.size for each in codings]),
            pair_one=np.array([each.pair_one for each in codings]),
            pair_none=np.array([each.pair_none for each in codings]),
            shift=np.array([each.shift for each in codings]),
            common=np.array([each.common for each in codings]),
            slope=1.0 / (p - q),
            offset=q / (p - q),
            weight=spread[0] / np.array(spread),
            rho=float(advice.rho if self.rho is None else self.rho),
            beta=float(beta if self.beta is None else self.beta),
            mu=float(mu if self.mu is None else self.mu),
            tokens=int(tokens),
            walk=self.hops,
            wake=float(self.wake_prob),
            loss=float(self.loss),
            delay=int(self.delay),
            pairs=int(self.sample_pairs),
        )

    def start(self, table: Table) -> State:
        """Return a population that adopts what its table says."""
        N, M, W, L = self.n_agents, self.n_options, self.delay + 1, len(self.levels)
        require(self, "n_agents", f"the table's {table.n_agents}", table.n_agents == N, N)
        options = table.qualities.shape[1]
        require(self, "n_options", f"the table's {options}", options == M, M)
        known = not self._networked or table.indptr.size > 0
        require(self, "engine", "mixed or crowd without a network", known, self.engine)
        networked = self._networked
        small = N * W < 1 << 24
        require(self, "n_agents", "below 2^24 / (delay + 1)", not networked or small, N)
        if self.engine == "tokens":  # every hop of every token has a name on the tape
            require(
                self, "tokens", f"below 2^32 / {N}", N * self.params.tokens < 1 << 32, self.tokens
            )
            require(self, "delay", "below 256", self.delay < 256, self.delay)
        here = table.here
        each, memo = here if self.params.each else 0, here if self.memoised else 0
        ends = None
        if networked and table.here == N:
            psi = Walk(Graph(indptr=table.indptr, indices=table.indices))
            if self.engine == "endpoints":
                ends = psi.ends(self.hops)
        members, split = 0 if self.engine == "crowd" else table.here, np.zeros((0, M + 1), np.int64)
        adoption = first_adoptions(table, table.first + np.arange(members))
        counts = np.bincount(np.where(adoption < 0, M, adoption), minlength=M + 1)
        if self.engine == "crowd":
            counts = first_counts(table)
            split = _dealt(counts, L)
            later = bool(np.any(table.edit_rounds > 0))
            require(self, "engine", "not crowd where later adoptions are given", not later, "crowd")
            for agent, option in zip(table.edit_agents, table.edit_options, strict=True):
                left, level = first_adoptions(table, np.array([agent]))[0], agent % L
                _bring(split, level, left)
                for where in (counts, split[level]):
                    where[left] -= 1
                    where[option] += 1
        return State(
            adoption=adoption.astype(np.int16),
            counts=counts.astype(np.int64),
            split=split,
            memory=np.full((self._members(here), M), 1.0 / M),
            pool=np.zeros((W, L, 2 * M + 1), np.int64),
            message=np.zeros((W, each), np.uint64),
            flying=np.zeros((W, each), np.int64),
            memo=np.zeros(memo, np.uint64),
            memo_of=np.zeros(memo, np.int16),
            **rows_of_ends(ends, 0, 0 if ends is None else ends[1].size),
            public=np.array([_leaving(table), 0.0, 0.0]),
        )

    @property
    def _networked(self) -> bool:
        return self.engine in ("tokens", "endpoints")

    def program(self, state: State, table: Table, tape: Tape, trace: Trace) -> Program:
        """Return the kernel and its arguments."""
        require(self, "tape", "seeded or secure", tape.kind != RECORDED, "a recorded one")
        if tape.kind == SECURE:
            require_secure(self)
        play = run_crowd if self.engine == "crowd" else run
        return play, (self.params, state, table, tape, trace)

    def _members(self, here: int) -> int:
        """Return how many agents have a memory: all of them, or the sample of a crowd."""
        if self.params.rho >= 1.0:
            return 0
        return 2 * self.sample_pairs if self.engine == "crowd" else here


def _dealt(counts: NDArray[np.int64], levels: int) -> NDArray[np.int64]:
    """Return the adopters of each option by level: a crowd deals levels out in turn."""
    level, ends = np.arange(levels)[:, None], np.cumsum(counts)
    split: NDArray[np.int64] = (ends - level - 1) // levels - (ends - counts - level - 1) // levels
    return split


def _bring(split: NDArray[np.int64], level: int, option: int) -> None:
    """Let somebody of a level adopt an option that somebody else adopts, by an exchange if nobody does."""
    if split[level, option] == 0:
        other, given = int(np.argmax(split[:, option])), int(np.argmax(split[level]))
        split[[level, other], option] += 1, -1
        split[[level, other], given] += -1, 1


def rows_of_ends(ends: Ends | None, before: int, total: int) -> dict[str, NDArray[Any]]:
    """Return the fields of a state that say where walks end; `before` entries are elsewhere."""
    starts, where, chances = ends or (np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0))
    entries = np.array([before, total], np.int64)
    return {"starts": starts, "ends": where, "chances": chances, "entries": entries}


def _leaving(table: Table) -> float:
    """Return the mean probability that a hop leaves its agent."""
    if table.indptr.size == 0 or table.here < table.n_agents:
        return 1.0
    degrees = np.diff(table.indptr)
    return float(leave(table.indptr, table.indices, degrees, 0.0)) / degrees.size


@kernel
def leave(indptr: Any, indices: Any, degrees: Any, total: Any) -> Any:
    """Return `total` and the probabilities that a hop leaves each agent, added up one by one."""
    for a in range(indptr.size - 1):
        for e in range(indptr[a], indptr[a + 1]):
            total += min(1.0 / degrees[a], 1.0 / degrees[indices[e]])
    return total
