"""An agent who copies what is popular and good, on a device of its own (paper 001).

A round is as many steps as a token makes hops. In its first step the agent perturbs what it adopts
and sends tokens off; in every step it passes on the tokens that it holds by eq. (2); when the tokens
have made their hops, whoever holds one has heard it, samples an option and adopts it or not. A token
that comes late is heard in the round in which it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require
from tacit.core.generator import to_unit
from tacit.core.kernels import kernel
from tacit.core.samplers import block, source_of
from tacit.core.tapes import EXPLORE
from tacit.dynamics import LearningDynamics
from tacit.dynamics.algorithm import adopts, awake, choose, perturb_one
from tacit.dynamics.dissemination import unbiased
from tacit.dynamics.dissemination.crowd import remember
from tacit.dynamics.dissemination.tokens import hop
from tacit.serving.peers.base import Outgoing, Peer


class _State(NamedTuple):
    memory: NDArray[np.float64]
    """Shape (1, M): smoothed estimates."""
    received: NDArray[np.int64]
    """Shape (1, M): bits of the tokens heard in this round."""
    counts: NDArray[np.int64]
    """Shape (3,): the adoption, tokens heard in this round, steps of this round made."""


class DynamicsPeer(Peer[LearningDynamics]):
    """One agent of the learning dynamics.

    Parameters
    ----------
    policy : LearningDynamics
        With the engine ``tokens``, corrected, neither memoised nor with losses and delays: those are
        the network's now.
    number : int
        Who this peer is, from 0.
    neighbours : mapping
        How many neighbours each of its own neighbours has, by number.
    good : callable
        ``good(round, option)`` returns whether the option has just been good.
    path, seed
        As in :class:`~tacit.serving.peers.Peer`.

    Examples
    --------
    >>> from tacit.dynamics import LearningDynamics
    >>> from tacit.serving.peers import DynamicsPeer
    >>> policy = LearningDynamics(
    ...     n_options=3, n_agents=2, epsilon=1.0, engine="tokens", tokens=4, walk_length=1
    ... )
    >>> ann, bob = (
    ...     DynamicsPeer(policy, me, {1 - me: 1}, lambda t, option: option == 0) for me in (0, 1)
    ... )
    >>> messages = ann.step()
    >>> bob.step([message for _, message in messages])[0][0]
    0
    """

    kind = "tacit-dynamics/1"

    def __init__(
        self,
        policy: LearningDynamics,
        number: int,
        neighbours: Mapping[int, int],
        good: Callable[[int, int], bool],
        *,
        path: str | Path | None = None,
        seed: int | None = None,
    ) -> None:
        plain = policy.variant == "corrected" and not policy.memoised
        plain = plain and policy.engine == "tokens" and policy.loss == 0 and policy.delay == 0
        plain = plain and len(policy.levels) == 1
        rule = "corrected, of the engine tokens and one epsilon, without memo, loss and delay"
        require(self, "policy", rule, plain, policy)
        require(self, "number", f"below {policy.n_agents}", number < policy.n_agents, number)
        sizes = list(neighbours.values())
        require(self, "neighbours", "each with one at least", all(d >= 1 for d in sizes), sizes)
        self._good = good
        self._neighbours = [int(each) for each in neighbours]
        # A graph of this peer's own: itself in row 0, its neighbours' rows of the right length.
        self._indptr = np.cumsum([0, len(sizes), *sizes]).astype(np.int64)
        self._indices = np.arange(1, len(sizes) + 1, dtype=np.int32)
        self._held: list[list[int]] = []
        self._early: list[list[int]] = []
        M = policy.n_options
        counts = np.array([number % M, 0, 0], np.int64)
        state = _State(np.full((1, M), 1.0 / M), np.zeros((1, M), np.int64), counts)
        super().__init__(policy, number, state, path=path, seed=seed)

    @property
    def adoption(self) -> int | None:
        """The option that it adopts, or None."""
        option = int(self._state.counts[0])
        return None if option < 0 else option

    def _take(self, content: Mapping[str, Any]) -> bool:
        tokens, hops = content.get("tokens"), self.policy.params.walk
        if content["from"] not in self._neighbours or not isinstance(tokens, list):
            return False
        for token in tokens:
            whole = isinstance(token, list) and len(token) == 5
            if not whole or not all(isinstance(x, int) and 0 <= x < 1 << 63 for x in token):
                return False
            _, origin, number, made, sent = token
            inside = origin < self.policy.n_agents and number < self.policy.params.tokens
            if not (inside and 1 <= made <= hops and sent < 1 << self.policy.n_options):
                return False
        for token in tokens:
            if token[3] < hops:
                self._held.append(token)
            elif token[0] > self.round:
                self._early.append(token)
            else:
                self._hear(token)
        return True

    def _hear(self, token: list[int]) -> None:
        self._state.counts[1] += 1
        for j in range(self.policy.n_options):
            self._state.received[0, j] += (token[4] >> j) & 1

    def _advance(self) -> list[Outgoing]:
        counts, params = self._state.counts, self.policy.params
        if counts[2] == params.walk:
            self._sample_and_adopt(self.round)
            self.round += 1
            counts[1] = counts[2] = 0
            self._state.received[:] = 0
            now = [each for each in self._early if each[0] <= self.round]
            self._early = [each for each in self._early if each[0] > self.round]
            for token in now:
                self._hear(token)
        moving, self._held = self._held, []
        if counts[2] == 0:
            moving += self._launched(self.round)
        counts[2] += 1
        return self._pass_on(moving)

    def _launched(self, t: int) -> list[list[int]]:
        """Stage 1: perturb the adoption once and put it on all tokens."""
        params, M = self.policy.params, self.policy.n_options
        if not _awake(self._tape, t, self.number, params.wake):
            return []
        adoption = int(self._state.counts[0])
        sent = int(perturb_one(params, self._tape, t, self.number, adoption, M)) & ((1 << M) - 1)
        return [[t, self.number, i, 0, sent] for i in range(params.tokens)]

    def _pass_on(self, tokens: list[list[int]]) -> list[Outgoing]:
        """Stage 2: one hop for each token; those that stay make their next one in the next step."""
        params = self.policy.params
        going: dict[int, list[list[int]]] = {}
        for t, origin, number, made, sent in tokens:
            name = origin * params.tokens + number
            row = _hop(self._tape, t, name, made, self._indptr, self._indices)
            token = [t, origin, number, made + 1, sent]
            if row != 0:
                going.setdefault(self._neighbours[row - 1], []).append(token)
            elif made + 1 < params.walk:
                self._held.append(token)
            elif t > self.round:
                self._early.append(token)
            else:
                self._hear(token)
        return [(to, self._write(tokens=each)) for to, each in sorted(going.items())]

    def _sample_and_adopt(self, t: int) -> None:
        """Stages 3 and 4."""
        params, state, a = self.policy.params, self._state, self.number
        if not _awake(self._tape, t, a, params.wake):
            return
        Q, got = np.zeros(self.policy.n_options), int(state.counts[1])
        j, u = _sampled(params, self._tape, t, a, state.received, got, state.memory, Q)
        taken = adopts(u, params.beta, bool(self._good(t, int(j))))
        state.counts[0] = j if taken else -1

    def _about(self) -> dict[str, Any]:
        return {"held": self._held, "early": self._early}

    def _recall(self, about: Mapping[str, Any]) -> None:
        self._held = [list(map(int, token)) for token in about["held"]]
        self._early = [list(map(int, token)) for token in about["early"]]


@kernel
def _awake(tape: Any, t: Any, a: Any, wake: Any) -> Any:
    return awake(source_of(tape), t, a, wake)


@kernel
def _hop(tape: Any, t: Any, name: Any, made: Any, indptr: Any, indices: Any) -> Any:
    return hop(source_of(tape), t, 0, name, made, indptr, indices, 0)


@kernel
def _sampled(
    params: Any, tape: Any, t: Any, a: Any, received: Any, got: Any, memory: Any, Q: Any
) -> Any:
    """Return the option that agent a samples (stage 3) and the draw by which it adopts it."""
    w0, w1, _, _ = block(source_of(tape), EXPLORE, t, a, 0)
    heard = unbiased(params, received, got, 0.0, 0, Q)
    total = remember(params, memory, 0, heard, Q)
    return choose(to_unit(w0), params.mu, Q, total), to_unit(w1)
