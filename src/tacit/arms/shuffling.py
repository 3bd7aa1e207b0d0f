"""Shuffled bits at work: the learner mixes the reports itself, and tells its policy full blocks only.

A device flips its bit as the block asks that was open when its decision was made. A report that comes when
that block is full already enters the next one. Blocks are flipped ever less, so such a bit is flipped more
than its block asks. That hides no less: to flip a bit once more is to mix the laws of a zero and of a one,
and what holds for every number of ones among the others holds for a mixture over that number.

The reports have identities, so that a learner is a shuffler only to those who see what it publishes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.arms.decider import ArmsDecider
from tacit.arms.policies.shuffled_klucb_cf import learn_from_report
from tacit.core.decider import Choice
from tacit.core.kernels import specialise
from tacit.core.tapes import Tape
from tacit.device.instructions import randomized_response

if TYPE_CHECKING:
    from tacit.arms.policies.shuffled_klucb_cf import ShuffledKLUCBCF


class ShufflingDecider(ArmsDecider):
    """One of `n_arms` options at a time, from the numbers of ones in blocks of reported bits.

    Parameters
    ----------
    policy : ShuffledKLUCBCF
    explore : float
        The share of decisions that are drawn evenly from the eligible arms.
    """

    def __init__(self, policy: ShuffledKLUCBCF, *, explore: float = 0.0) -> None:
        super().__init__(policy, explore=explore)
        self.trust = "shuffler"
        self._sizes = self._rule.sizes.tolist()
        self._local = policy.shuffler.bits
        self._learn_from_report: Any = specialise(
            learn_from_report, self._rule, self._state, 0, 0, 0.0, 0
        )
        self._instructions: dict[tuple[int, float | None], dict[str, Any]] = {}

    @property
    def epsilon(self) -> float:
        """What one report costs at most from whoever sees it: the bits of the largest blocks."""
        return max(self._local(size).epsilon for size in self._sizes)

    @property
    def unprotected(self) -> tuple[str, ...]:
        """What reports tell to those who see them with their identities."""
        blocks = self._state.blocks.tolist()
        asked = max(self._local(self._block(each)).epsilon for each in blocks)
        return (
            "a reward from whoever sees its report under way or reads the learner's memory, store or "
            "backups, where it stands beside its decision until retention is over: from them it has "
            f"the local epsilon of its bit only, up to {asked:.3g} so far",
        )

    def choose(self, tape: Tape, t: int, query: Any) -> Choice:
        """Choose one of the arms in `query`, and fix how bits of every arm are flipped."""
        return super().choose(tape, t, query)._replace(record=self._state.blocks.tolist())

    def instructions(self, option: int, record: Any, default: float | None) -> dict[str, Any]:
        """Ask for a bit, flipped as the option's block says that was open then."""
        size = self._block(record[option] if record else 0)
        made = self._instructions.get((size, default))
        if made is None:
            made = randomized_response(self._local(size).epsilon, default=default)
            self._instructions[size, default] = made
        return made

    def _block(self, number: int) -> int:
        size: int = self._sizes[min(number, len(self._sizes) - 1)]
        return size

    def checked(self, option: int, record: Any, value: Any) -> Any:
        """Return a bit."""
        if type(value) is int and value in (0, 1):
            return value
        raise ValueError(
            f"report: expected a value of 0 or 1, as a device makes it of a reward, got {value!r}"
        )

    def learn(self, tape: Tape, t: int, option: int, record: Any, value: Any) -> None:
        """Put a bit into its block; if the block is full, tell how many are ones."""
        blocks, ones = self._state.blocks, self._state.ones
        finished, before = int(blocks[option]), int(ones[option])
        self._learn_from_report(self._rule, self._state, t, option, float(value), record[option])
        if blocks[option] > finished:
            tape.log[tape.reads[1]] = ones[option] - before
            tape.reads[1] += 1

    @property
    def leverage(self) -> float:
        """What debiasing makes of a lie where bits are flipped most."""
        return 1.0 / (2.0 * float(self._rule.keeps.min()) - 1.0)
