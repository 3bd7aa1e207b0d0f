"""An agent who tracks a changing truth with its neighbours, on a device of its own (paper 000).

A step finishes a round and begins the next: it averages what neighbours sent, names a state, suffers
that state's loss, reports it through its own noise, and sends what it believes now. Whatever does not
arrive is replaced by the latest that did.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tacit.core.constraints import require
from tacit.diffusion import (
    DiffusionBandit,
    OutsiderPrivateDiffusion,
    SpyPrivateDiffusion,
    corrected_step,
)
from tacit.diffusion.corrected_step import name_state, share, start, suffer
from tacit.serving.peers.base import Outgoing, Peer

Sound = DiffusionBandit | OutsiderPrivateDiffusion | SpyPrivateDiffusion


class DiffusionPeer(Peer[Sound]):
    """One agent of `DiffusionBandit` with adaptive rates or of a corrected private policy.

    Parameters
    ----------
    policy : DiffusionBandit, OutsiderPrivateDiffusion or SpyPrivateDiffusion
    number : int
        Who this peer is, from 0.
    hears : mapping
        The weight of everybody it listens to, itself among them, by number; they add up to 1.
    tells : sequence of int
        Who listens to it.
    signal : callable
        ``signal(round)`` returns the peer's noisy observation of the true state.
    loss : callable
        ``loss(round, state)`` returns what naming a state costs, in [0, 1].
    signal_std : float, default 1
        Standard deviation of the signals.
    path, seed
        As in :class:`~tacit.serving.peers.Peer`.

    Examples
    --------
    >>> from tacit.diffusion import SpyPrivateDiffusion
    >>> from tacit.serving.peers import DiffusionPeer
    >>> policy = SpyPrivateDiffusion(n_states=3, epsilon=1.0)
    >>> ann, bob = (
    ...     DiffusionPeer(
    ...         policy, me, {0: 0.5, 1: 0.5}, [1 - me], lambda t: 2.1, lambda t, state: state != 2
    ...     )
    ...     for me in (0, 1)
    ... )
    >>> [(to, message)] = ann.step()
    >>> to, bob.step(), bob.step([message])[0][0]
    (1, ..., 0)
    """

    kind = "tacit-diffusion/1"

    def __init__(
        self,
        policy: Sound,
        number: int,
        hears: Mapping[int, float],
        tells: list[int],
        signal: Callable[[int], float],
        loss: Callable[[int, int], float],
        *,
        signal_std: float = 1.0,
        path: str | Path | None = None,
        seed: int | None = None,
    ) -> None:
        params = policy.params
        sound = policy.rates == "adaptive" and isinstance(params, corrected_step.Params)
        require(self, "policy", "corrected or with adaptive rates", sound, policy)
        assert isinstance(params, corrected_step.Params)
        self._params = params
        require(self, "hears", "to hold the peer itself", number in hears, sorted(hears))
        total = math.fsum(hears.values())
        require(self, "hears", "weights that add up to 1", abs(total - 1) < 1e-9, total)
        require(self, "signal_std", "> 0", signal_std > 0, signal_std)
        self._tells = [int(each) for each in tells if each != number]
        self._signal, self._loss, self._std = signal, loss, float(signal_std)
        others = [each for each in hears if each != number]
        self._rows = {number: 0, **{each: row for row, each in enumerate(others, 1)}}
        # In the order of the mapping, so that sums are rounded as the simulator's are.
        self._indptr = np.array([0, len(hears)], np.int64)
        self._senders = np.array([self._rows[each] for each in hears], np.int32)
        self._weights = np.array(list(hears.values()), np.float64)
        self._heard: dict[int, int] = dict.fromkeys(others, -1)
        M = policy.n_states
        state = start(np.full((1, M), 1.0 / M), params)
        state = state._replace(p=np.full((len(hears), M), 1.0 / M))
        self._shared = False
        super().__init__(policy, number, state, path=path, seed=seed)

    @property
    def belief(self) -> list[float]:
        """What it believes now, a probability for each state."""
        return [float(each) for each in self._state.mu[0]]

    @property
    def choice(self) -> int:
        """The state that it named last."""
        return int(self._state.choices[0])

    def _take(self, content: Mapping[str, Any]) -> bool:
        sender, t, p = content["from"], content.get("round"), content.get("p")
        M = self._state.mu.shape[1]
        if sender not in self._heard or not isinstance(t, int) or not isinstance(p, list):
            return False
        real = len(p) == M and all(isinstance(x, (int, float)) and 0 <= x <= 1 for x in p)
        if not real or abs(math.fsum(p) - 1) > 1e-6:
            return False
        if t > self._heard[sender]:  # of two messages the later one counts, whichever came first
            self._heard[sender] = t
            self._state.p[self._rows[sender]] = p
        return True

    def _advance(self) -> list[Outgoing]:
        if self._shared:
            self._finish(self.round)
            self.round += 1
        self._shared = True
        return self._begin(self.round)

    def _finish(self, t: int) -> None:
        params, state, tape, me = self._params, self._state, self._tape, self.number
        name_state(params, state, tape, t, 0, me, self._indptr, self._senders, self._weights)
        loss = float(self._loss(t, self.choice))
        require(self, "loss", "in [0, 1]", 0 <= loss <= 1, loss)
        suffer(params, state, tape, t, 0, me, loss)

    def _begin(self, t: int) -> list[Outgoing]:
        if not self.policy.sends_in(t):
            return []
        S = float(self._signal(t))
        require(self, "signal", "finite", math.isfinite(S), S)
        share(self._params, self._state, self._tape, t, 0, self.number, S, self._std)
        message = self._write(round=t, p=self._state.p[0])
        return [(to, message) for to in self._tells]

    def _about(self) -> dict[str, Any]:
        return {"shared": self._shared, "heard": sorted(self._heard.items())}

    def _recall(self, about: Mapping[str, Any]) -> None:
        self._shared = bool(about["shared"])
        self._heard = {int(each): int(t) for each, t in about["heard"]}
