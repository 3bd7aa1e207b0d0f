"""A small central policy for tests of serving: it releases the noised sum of every few rewards.

It runs as plain Python and keeps, outside all that is tested, an account of what noise was put on
which sum, so that a test can tell when noise is used twice or a reward is released twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tacit.core.decider import Choice, Decider
from tacit.device.instructions import identity, randomized_response
from tacit.privacy import Guarantee

BLOCK = 3


class State(NamedTuple):
    sums: Any
    counts: Any
    means: Any
    members: Any
    """Which rounds are in the open block of each option, -1 where none."""


@dataclass(frozen=True, kw_only=True)
class Toy:
    """Not a policy of any setting: only what a decider needs to be named by."""

    n_options: int = 3
    local: bool = False
    name: ClassVar[str] = "toy"

    def guarantee(self, horizon: int) -> Guarantee:
        """Return that it protects nothing: its noise is made up."""
        return Guarantee.none("a toy", trust="local" if self.local else "central")


class Account:
    """What was drawn: noise by key and position, and which rounds each release contained."""

    def __init__(self) -> None:
        self.noise: dict[tuple[bytes, int, int], tuple[Any, tuple[int, ...]]] = {}
        self.twice: list[Any] = []
        self.told: dict[tuple[float, ...], tuple[int, ...]] = {}
        """By what was released, the latest if several were the same: the rounds that are in it."""

    def drawn(self, key: bytes, t: int, option: int, total: Any, rounds: tuple[int, ...]) -> None:
        place, sums = (key, t, option), (total, rounds)
        if self.noise.setdefault(place, sums) != sums:
            self.twice.append((place, self.noise[place], sums))


class ToyDecider(Decider):
    horizon = None

    def __init__(self, policy: Toy, account: Account) -> None:
        self.policy: Any = policy
        self.account = account
        self.n_options = policy.n_options
        self.trust = "local" if policy.local else "central"
        self.releases = not policy.local
        K = policy.n_options
        self._state = State(
            np.zeros(K), np.zeros(K, np.int64), np.zeros(K), np.full((K, BLOCK), -1, np.int64)
        )

    @property
    def state(self) -> State:
        return self._state

    @property
    def epsilon(self) -> float:
        return 1.0

    def asked(self, query: Mapping[str, Any]) -> list[int]:
        eligible = query.get("eligible")
        return list(range(self.n_options)) if eligible is None else list(eligible)

    def choose(self, tape: Any, t: int, query: Any) -> Choice:
        # Depends on what was released, on the round, and on the key for choices.
        word = (int(tape.key[0]) + 7 * t + int(1000 * self._state.means.sum())) % (2**32)
        return Choice(query[word % len(query)], 1.0 / len(query))

    def instructions(self, option: int, record: Any, default: float | None) -> dict[str, Any]:
        return randomized_response(1.0) if self.policy.local else identity(default=default)

    def checked(self, option: int, record: Any, value: Any) -> Any:
        if type(value) in (int, float) and 0 <= value <= 1:
            return value
        raise ValueError(f"report: expected a number in [0, 1], got {value!r}")

    def learn(self, tape: Any, t: int, option: int, record: Any, value: Any) -> None:
        s = self._state
        s.members[option, s.counts[option]] = t
        s.sums[option] += value
        s.counts[option] += 1
        if s.counts[option] == BLOCK:
            total, rounds = float(s.sums[option]), tuple(s.members[option].tolist())
            if not self.policy.local:
                key = tape.key[4:].tobytes()
                self.account.drawn(key, t, option, total, rounds)
                total += (int(tape.key[4]) + 31 * t + option) % 1000 / 1000
                self.account.told[total,] = rounds
                tape.log[tape.reads[1]] = total
                tape.reads[1] += 1
            s.means[option] = total / BLOCK
            self._clear(option)

    def _clear(self, option: int) -> None:
        self._state.sums[option], self._state.counts[option] = 0.0, 0
        self._state.members[option] = -1

    def grown(self) -> ToyDecider:
        local, K = self.policy.local, self.n_options
        larger = ToyDecider(Toy(n_options=K + 1, local=local), self.account)
        for old, new in zip(self._state, larger._state, strict=True):
            new[:K] = old
        return larger

    def retire(self, option: int) -> None:
        self._clear(option)

    def discard(self) -> None:
        for option in range(self.n_options):
            self._clear(option)
