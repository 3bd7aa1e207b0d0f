"""Exact audits of policies: every run of a small game is followed, and epsilon itself is found.

The kernels that the simulator and a service run are interpreted here, with the tape's draws replaced by
draws whose cells are enumerated (`tacit.privacy.auditing.enumeration`): no formula of a mechanism or a
policy is repeated. What is seen is every released value and every decision. Policies that are secure
are enumerated as a service runs them, their probabilities whole numbers of 2^-53.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import types
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.core import samplers, tapes
from tacit.core.arrays import in_one_buffer
from tacit.core.constraints import require
from tacit.core.generator import philox, to_open_unit, to_unit
from tacit.core.kernels import interpreted
from tacit.core.policy import AnyEnvironment, AnyPolicy
from tacit.core.tapes import SECURE, Tape
from tacit.privacy import Mechanism, NeighbouringPair, exact
from tacit.privacy.auditing.enumerated_draws import ContinuousDrawError, Draw, Draws, Noise
from tacit.privacy.auditing.enumeration import ExactResult, exact_audit
from tacit.simulation.audits import new_tape
from tacit.simulation.run import require_match

drawn, released = interpreted(tapes.drawn, {}), interpreted(tapes.released, {})
_WIDEST = 2**12
"""A tape's log: more released values than this are no small game."""


def audit_exactly(
    policy: AnyPolicy,
    environment: AnyEnvironment,
    *,
    horizon: int = 3,
    epsilon: float | None = None,
    delta: float | None = None,
    pairs: Iterable[NeighbouringPair] | None = None,
) -> ExactResult:
    """Return the epsilon of a policy in a game of a few rounds, over all its small tables.

    Parameters
    ----------
    policy : Policy
        One whose noise has few outcomes, as responses have, or is discrete Laplace noise on what it
        releases; not Gaussian noise.
    environment : Environment
        A small one, of the same setting; it says which pairs of tables there are (`every_pair`).
    horizon : int
        Rounds.
    epsilon, delta : float, optional
        The claim. By default what ``policy.guarantee(horizon)`` states.
    pairs : iterable of NeighbouringPair, optional
        The only tables to try, where a game is too long for all.

    Examples
    --------
    >>> from tacit.arms import KLUCBCF, Bernoulli
    >>> environment = Bernoulli(means=(0.3, 0.7))
    >>> found = audit_exactly(KLUCBCF(n_arms=2, epsilon=1.0), environment, horizon=2)
    >>> found.verdict, round(found.found, 9)
    ('true of this game', 1.0)
    """
    require_match(policy, environment, horizon)
    guarantee = policy.guarantee(horizon)
    claimed = guarantee.epsilon if epsilon is None else epsilon
    rule = "finite" if epsilon is not None else f"given, because {policy.name} claims no finite one"
    require("audit_exactly", "epsilon", rule, math.isfinite(claimed), claimed)
    allowed = (guarantee.delta if epsilon is None else 0.0) if delta is None else delta
    game = _Game(policy, environment, horizon)
    tried = environment.every_pair(guarantee.unit, horizon) if pairs is None else pairs
    found = exact_audit(game.play, tried, epsilon=claimed, delta=allowed)
    return dataclasses.replace(found, silent=game.most == 0)


def _table_words(*place: Any) -> Any:
    return tuple(map(np.uint64, philox(*place)))


class _Chosen:
    """Draws of the audit's choice in place of a tape's."""

    def __init__(self) -> None:
        self.begin(Draws([]))
        self.instead = {
            tapes.uniform: self.uniform,
            tapes.noise_uniform: self.noise_uniform,
            tapes.noise_word: self.no_words,
            exact.happens: self.happens,
            exact.whole: self.whole,
            exact.secure_below: self.secure_below,
            exact.below: self.no_grid,
            exact.secure_laplace: self.secure_laplace,
            tapes.released: self.released,
            exact.secure_gaussian: self.no_grid,
            exact.noise_below: self.below,
            samplers.block: self.block,
            philox: _table_words,
            to_unit: self.to_unit,
            to_open_unit: self.to_unit,
        }

    def begin(self, draws: Draws) -> None:
        """Begin a path."""
        self.draws, self.reads = draws, 0

    def end(self, tape: Tape) -> None:
        """Make sure that nothing was drawn from the tape itself."""
        if int(tape.reads.sum()) != self.reads:
            raise ContinuousDrawError("it draws from the tape where that cannot be followed")

    def uniform(self, tape: Any, t: Any, index: Any, purpose: Any) -> Any:
        tape.reads[0] += 1
        self.reads += 1
        return self.draws.uniform()

    def noise_uniform(self, tape: Any, t: Any, index: Any, purpose: Any) -> Any:
        self.drawn(tape, t, index, purpose)
        return self.draws.uniform()

    def drawn(self, tape: Any, t: Any, index: Any, purpose: Any) -> None:
        drawn(tape, t, index, purpose, 1)
        self.reads += 1

    def happens(self, tape: Any, t: Any, index: Any, purpose: Any, probability: Any) -> bool:
        self.drawn(tape, t, index, purpose)
        exactly = Fraction(float(probability))
        if tape.kind == SECURE:
            exactly = Fraction(math.floor(exactly * 2**53), 2**53)
        return self.draws.happens(exactly)

    def whole(self, tape: Any, t: Any, index: Any, purpose: Any, n: Any) -> Any:
        self.drawn(tape, t, index, purpose)
        return self.draws.uniform() * n

    def secure_below(self, tape: Any, t: Any, index: Any, purpose: Any, n: Any, k: Any) -> int:
        return int(self.draws.uniform() * n)

    def secure_laplace(self, tape: Any, t: Any, index: Any, purpose: Any, scale: Any) -> Noise:
        self.drawn(tape, t, index, purpose)
        return self.draws.noise(int(scale))

    def released(self, tape: Any, value: Any) -> Any:
        return released(tape, value.release() if isinstance(value, Noise) else value)

    def below(self, tape: Any, t: Any, index: Any, purpose: Any, k: Any, n: Any) -> Any:
        return int(self.draws.uniform() * n), k + 1

    def block(self, source: Any, purpose: Any, t: Any, j: Any, k: Any) -> Any:
        return tuple(self.draws.uniform() for _ in range(4))

    def to_unit(self, word: Any) -> Any:
        # Words of a table are numbers: what would happen is not up to chance here.
        return word if isinstance(word, Draw) else to_unit(word)

    def no_words(self, *_: Any) -> Any:
        raise ContinuousDrawError("its sampler works on the words of a tape")

    def no_grid(self, *_: Any) -> Any:
        raise ContinuousDrawError("its noise lies on a grid of far more steps than can be followed")


class _Game:
    """A policy that is played again and again, with draws of the audit's choice."""

    def __init__(self, policy: AnyPolicy, environment: AnyEnvironment, horizon: int) -> None:
        self.policy, self.environment, self.horizon = policy, environment, horizon
        self.chosen = _Chosen()
        self.prepared: dict[int, Any] = {}
        self.most = 0
        """How many values a path released, at most."""

    def play(self, table: Any, draws: Draws) -> tuple[float | None, ...]:
        """Play on a table and return what was released and decided."""
        if id(table) not in self.prepared:
            self.prepared[id(table)] = self.prepare(table)
        program, arguments, tape, trace, buffer, fresh = self.prepared[id(table)]
        np.copyto(buffer, fresh)
        self.chosen.begin(draws)
        program(*arguments)
        self.chosen.end(tape)
        values = tape.log[: tape.reads[1]]
        self.most = max(self.most, int(np.count_nonzero(~np.isnan(values))))
        seen = (*values.tolist(), *np.ravel(trace.decisions).tolist())
        # What was not sent is not-a-number, which equals nothing; None equals None.
        return tuple(None if math.isnan(x) else x for x in seen)

    def prepare(self, table: Any) -> Any:
        """Return a game on one table, ready to be played from its beginning."""
        rounds = np.array([self.horizon], np.int64)
        trace = self.environment.trace(self.horizon, rounds, record=True)
        parts = self.policy.start(table), trace, new_tape(self.policy.secure, _WIDEST)
        (state, trace, tape), buffer = in_one_buffer(parts)
        play, rest = self.policy.program(state, table, tape, trace)
        program = interpreted(play, self.chosen.instead)
        return program, (*rest, 0, self.horizon), tape, trace, buffer, buffer.copy()


def audit_mechanism_exactly(
    mechanism: Mechanism, *, epsilon: float | None = None, delta: float | None = None
) -> ExactResult:
    """Return the epsilon of one use of a mechanism, over its worst pairs of values.

    Examples
    --------
    >>> from tacit.privacy import UnaryEncoding
    >>> round(audit_mechanism_exactly(UnaryEncoding(epsilon=1.0, options=3)).found, 9)
    1.0
    """
    chosen, kind = _Chosen(), type(mechanism)
    methods: dict[str, Any] = {
        name: interpreted(method, chosen.instead)
        for name in dir(kind)
        if name.startswith("_")
        and not name.startswith("__")
        and isinstance(method := getattr(kind, name), types.FunctionType)
    }
    methods["channel"] = functools.cache(kind.channel)
    twin = copy.copy(mechanism)
    object.__setattr__(twin, "__class__", type(kind.__name__, (kind,), methods))

    def play(value: Any, draws: Draws) -> tuple[float, ...]:
        chosen.begin(draws)
        values = np.atleast_1d(np.asarray(value, float))
        out, tape = np.empty((1, values.size)), new_tape(mechanism.secure, _WIDEST)
        twin._fill(tape, values, out)
        chosen.end(tape)
        return tuple(out[0].tolist())

    allowed = getattr(mechanism, "delta", 0.0) if epsilon is None else 0.0
    return exact_audit(
        play,
        mechanism.worst_pairs(),
        epsilon=mechanism.epsilon if epsilon is None else epsilon,
        delta=allowed if delta is None else delta,
    )
