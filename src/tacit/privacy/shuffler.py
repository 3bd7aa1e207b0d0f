"""A shuffler: block sums without a server that sees true rewards.

People flip their bits on their own devices; somebody who is neither them nor the learner collects the
reports of a block, forgets whose they are, and tells the learner how many are ones. It is a third trust,
between `TrustedServer` and none, and it is not equal privacy: there is a delta, the shuffler must be
trusted not to say whose a report is, and the other people of the block to flip their bits.

How often bits are flipped follows from the size of the block, which is fixed before it opens. The larger it
is, the less: a block of 10,000 reports at epsilon 0.5 and delta 1e-6 is one of bits that are flipped
at a local epsilon of 4.7. That much, and no less, is what the shuffler itself learns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.core.constraints import Count, Share, require
from tacit.privacy.block_sums import BlockSums
from tacit.privacy.guarantees import Claim, Guarantee
from tacit.privacy.mechanisms.shuffled_bits import ShuffledBits
from tacit.privacy.releases import least_private


@dataclass(frozen=True, kw_only=True)
class Shuffler(BlockSums):
    """Somebody who mixes the flipped bits of a block and tells their number.

    Guarantee: (`epsilon`, `delta`) for one reward over the whole run, from everybody but the shuffler;
    from the shuffler the local epsilon that its blocks have, pure.

    Parameters
    ----------
    epsilon : float
        Of one reward, from outside the shuffler.
    delta : float
        The probability of what epsilon does not cover.
    least, most : int
        The sizes between which blocks lie. Blocks of more than `most` reports flip as if they had
        `most`.

    Examples
    --------
    >>> shuffler = Shuffler(epsilon=0.5, delta=1e-6, least=1000, most=4000)
    >>> [round(shuffler.bits(n).epsilon, 2) for n in (1000, 1999, 4000, 10**6)]
    [2.57, 2.57, 3.84, 3.84]
    >>> shuffler.guarantee().brief()
    'epsilon 0.5, delta 1e-06 a reward, shuffler'
    """

    trust: ClassVar[str] = "shuffler"
    delta: Share
    least: Count
    most: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "unit", "'reward'", self.unit == "reward", self.unit)
        require(self, "most", f">= least = {self.least}", self.most >= self.least, self.most)

    @property
    def sizes(self) -> list[int]:
        """The sizes that bits are calibrated for: each twice the one before, at most `most`."""
        sizes = [self.least]
        while 2 * sizes[-1] <= self.most:
            sizes.append(2 * sizes[-1])
        return sizes

    def bits(self, reports: int) -> ShuffledBits:
        """Return how bits are flipped in a block of so many: as in the next smaller of `sizes`.

        More reports only hide more, so that the epsilon of fewer holds.
        """
        require(self, "reports", f">= least = {self.least}", reports >= self.least, reports)
        size = max(each for each in self.sizes if each <= reports)
        return ShuffledBits.calibrate(epsilon=self.epsilon, delta=self.delta, reports=size)

    @property
    def mechanism(self) -> ShuffledBits:
        """The bits of a block of the largest size, the ones that are flipped least."""
        return self.bits(self.sizes[-1])

    def guarantee(self, claim: Claim | None = None, largest: int | None = None) -> Guarantee:
        """Return what is protected however many blocks are released.

        Parameters
        ----------
        claim : Claim, optional
            What a paper says.
        largest : int, optional
            The size of the largest block that is ever filled; by default any.
        """
        top = self.sizes[-1] if largest is None else max(self.least, largest)
        bits = [self.bits(size) for size in self.sizes if size <= top]
        local = max(each.epsilon for each in bits)
        return Guarantee(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=self.unit,
            trust=self.trust,
            span="run",
            basis="accounted",
            claim=claim,
            note=(
                "Decisions and the numbers of ones in blocks are covered; each reward enters one of "
                f"them. From the shuffler itself each reward has a local epsilon of {local:.3g} only"
            ),
            releases=((least_private(each.release for each in bits), 1),),
            not_protected=("sending", "others", "shuffler", "flippers"),
        )
