"""A policy of the arms setting at work: the decider that :mod:`tacit.serving` stands on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.arms.corruption import CorruptionSchedule
from tacit.arms.policy import ArmsPolicy
from tacit.core.constraints import require
from tacit.core.decider import Choice, Decider, Estimate, mean_of_bits
from tacit.core.kernels import specialise
from tacit.core.tapes import FLOOR, Tape, secure_tape, uniform
from tacit.device.channel import Channel
from tacit.device.instructions import asymmetric_response, identity, randomized_response

if TYPE_CHECKING:
    from tacit.arms.policies.shuffled_klucb_cf import ShuffledKLUCBCF


class ArmsDecider(Decider):
    """One of `n_arms` options at a time.

    Parameters
    ----------
    policy : ArmsPolicy[Any]
    explore : float
        The share of decisions that are drawn evenly from the eligible arms.
    """

    def __init__(self, policy: ArmsPolicy[Any], *, explore: float = 0.0) -> None:
        self.policy: ArmsPolicy[Any] = policy
        self.n_options, self.reward_range = policy.n_arms, policy.reward_range
        self.horizon = getattr(policy, "horizon", None)
        self.patience = getattr(policy, "max_delay", None)
        kind = type(policy)
        schedule: CorruptionSchedule | None = getattr(policy, "schedule_in_force", None)
        ends = None if schedule is None else schedule.response_probabilities(policy.n_arms)
        self._starts = (0,) if schedule is None else schedule.starts
        self._several = len(self._starts) > 1
        self.trust = "central" if ends is None else "local"
        self._ends = ends
        self._epsilon: float | None = getattr(policy, "epsilon", None)
        self.releases = ends is None and policy.mechanisms != ()
        if not policy.learns_from_any:
            self.not_explored = f"{kind.__name__} learns only from arms that it chose itself"
            why = f"0, because {self.not_explored}"
            require("Learner", "explore", why, explore == 0, explore)
        require("Learner", "explore", "in [0, 1)", 0 <= explore < 1, explore)
        self._explore = explore
        self._rule: Any = policy.params
        self._state: Any = policy.start(None)
        self._all = np.arange(policy.n_arms)
        tape = secure_tape(log=1)
        common = (self._rule, self._state, tape, 0)
        kernels = policy.kernels
        without_tape = (self._rule, self._state, 0)
        self._select = specialise(kernels.select, *common, self._all)
        self._learn = specialise(kernels.learn, *common, 0, 0.0)
        self._learn_from_report = self._serve = self._probabilities = self._posterior = None
        if ends is not None and kernels.learn_from_report is not None:
            self._learn_from_report = specialise(kernels.learn_from_report, *without_tape, 0, 0.0)
        if kernels.serve is not None:
            self._serve = specialise(kernels.serve, *without_tape, 0)
        if kernels.probabilities is not None:
            out = np.zeros(policy.n_arms)
            self._probabilities = specialise(kernels.probabilities, *without_tape, self._all, out)
        if kernels.posterior is not None:
            two = np.empty((2, policy.n_arms))
            self._posterior = specialise(kernels.posterior, *without_tape, self._all, two)
        self._uniform: Any = specialise(uniform, tape, 0, 0, FLOOR) if explore else None
        self._shown: dict[int, tuple[int, ...]] = {}
        self._default: dict[tuple[int, int, float | None], tuple[dict[str, Any], Channel]] = {}

    @property
    def state(self) -> Any:
        """The policy's arrays."""
        return self._state

    @property
    def epsilon(self) -> float:
        """What the policy states for a reward, or for a round of which one is seen."""
        if self._ends is None:
            return self.policy.guarantee(self.horizon or 1).epsilon
        places = product(range(self.policy.n_arms), range(len(self._ends)))
        return max(self._device(*place, None)[1].epsilon for place in places)

    def shown_with(self, option: int) -> Sequence[int]:
        """Return the arms that the graph shows with an arm, increasing."""
        known = self._shown.get(option)
        if known is None:
            known = self._shown[option] = tuple(sorted(self.policy.shown_with(option)))
        return known

    def rewards(self, option: int) -> int:
        """Return how many rewards the graph shows with an arm; a whole round is one record."""
        one = self._ends is not None or self.policy.guarantee(self.horizon or 1).unit == "round"
        return 1 if one else len(self.shown_with(option))

    def asked(self, query: Mapping[str, Any]) -> NDArray[np.int64]:
        """Return the eligible arms, increasing."""
        for name in ("person", "contexts"):
            given = query.get(name) is not None
            require(self.policy, name, "not given in the arms setting", not given, query.get(name))
        eligible = query.get("eligible")
        if eligible is None:
            return self._all
        arms = np.unique(np.asarray(eligible, np.int64))
        inside = arms.size > 0 and arms[0] >= 0 and arms[-1] < self.policy.n_arms
        rule = f"some of 0..{self.policy.n_arms - 1}"
        require(self.policy, "eligible", rule, bool(inside), eligible)
        return arms

    def choose(self, tape: Tape, t: int, query: Any) -> Choice:
        """Choose one of the arms in `query`."""
        best = arm = int(self._select(self._rule, self._state, tape, t, query))
        share, m = self._explore, query.size
        if share and self._uniform(tape, t, 0, FLOOR) < share:
            arm = int(query[int(self._uniform(tape, t, 1, FLOOR) * m)])
        piece = bisect_right(self._starts, t) - 1 if self._several else None
        if self._posterior is not None:
            drawn = np.empty((2, m))
            self._posterior(self._rule, self._state, t, query, drawn)
            return Choice(arm, partial(self._chance_of_largest, drawn, query, arm), piece)
        if self._probabilities is None:
            return Choice(arm, self._floored(1.0 if arm == best else 0.0, m), piece)
        out = np.empty(self.policy.n_arms)
        self._probabilities(self._rule, self._state, t, query, out)
        return Choice(arm, self._floored(float(out[arm]), m), piece)

    def _floored(self, chance: float, m: int) -> float:
        """Return the chance of one of m arms when some decisions are drawn evenly."""
        share = self._explore
        return (1.0 - share) * chance + share / m if share else chance

    def _chance_of_largest(self, drawn: Any, eligible: Any, arm: int) -> float:
        """Return the chance that an arm's draw is the largest, of draws that are distributed so."""
        out = np.empty(eligible.size)
        largest: Any = self.policy.kernels.largest
        largest(drawn[0], drawn[1], out)
        return self._floored(float(out[np.searchsorted(eligible, arm)]), eligible.size)

    def instructions(self, option: int, record: Any, default: float | None) -> dict[str, Any]:
        """Ask for the reward, or for a bit of it."""
        return self._device(option, record or 0, default)[0]

    def _device(
        self, option: int, piece: int, default: float | None
    ) -> tuple[dict[str, Any], Channel]:
        if self._ends is None:
            option = 0
        made = self._default.get((option, piece, default))
        if made is None:
            low, high = self.reward_range
            clipped: Any = {"low": low, "high": high, "default": default}
            if self._ends is None:
                answer = identity(**clipped)
            elif self._epsilon is not None:
                answer = randomized_response(self._epsilon, **clipped)
            else:
                zero, one = (float(end) for end in self._ends[piece, option])
                answer = asymmetric_response(1.0 - zero, one, **clipped)
            made = self._default[option, piece, default] = (answer, Channel(answer))
        return made

    def checked(self, option: int, record: Any, value: Any) -> Any:
        """Return a bit, a reward in [0, 1], or rewards by arm where the graph shows several."""
        if self._learn_from_report is not None:
            if type(value) is int and value in (0, 1):
                return value
            raise ValueError(
                f"report: expected a value of 0 or 1, as a device makes it of a reward, got {value!r}"
            )
        if type(value) is dict:
            return self._observed(option, value)
        low, high = self.reward_range
        if type(value) in (float, int) and low <= value <= high:
            return float(value)
        raise ValueError(f"report: expected a reward in [{low:g}, {high:g}], got {value!r}")

    def _observed(self, option: int, value: dict[Any, Any]) -> Any:
        own = value.get(option)
        if own is None:
            raise ValueError(f"report: expected the reward of the chosen option {option}, got none")
        self.policy.require_shown(option, [arm for arm in value if arm != option])
        return {arm: self.checked(option, None, reward) for arm, reward in sorted(value.items())}

    def learn(self, tape: Tape, t: int, option: int, record: Any, value: Any) -> None:
        """Take in a bit, a reward, or the rewards of several arms; `option` was served."""
        if self._serve is not None:
            self._serve(self._rule, self._state, t, option)
        if self._learn_from_report is not None:
            self._learn_from_report(self._rule, self._state, t, option, float(value))
        elif type(value) is dict:
            for arm, reward in value.items():
                self._learn(self._rule, self._state, tape, t, arm, reward)
        else:
            self._learn(self._rule, self._state, tape, t, option, value)

    def estimates(self, tallies: Sequence[Sequence[float]]) -> list[Estimate | None] | None:
        """Debias the reports of a local policy; of a central one take what it released."""
        if self._ends is None or len(self._ends) > 1:
            return self.policy.released_means(self._state)
        ends = [self._ends[0, arm % self.policy.n_arms] for arm in range(len(tallies))]
        shares = [
            mean_of_bits(tally[2], tally[4], float(zero), float(one))
            for tally, (zero, one) in zip(tallies, ends, strict=True)
        ]
        low, high = self.reward_range
        return [
            None if share is None else Estimate(*(low + (high - low) * each for each in share))
            for share in shares
        ]

    @property
    def leverage(self) -> float | None:
        """Return 1 where rewards are reported, and what debiasing makes of it where bits are."""
        low, high = self.reward_range
        if self._ends is None:
            return high - low
        return float((high - low) / np.abs(np.diff(self._ends)).min())

    def grown(self) -> ArmsDecider:
        """Return a decider with one arm more; old arms keep what was learned."""
        smaller: Any = self.policy
        policy: ArmsPolicy[Any] = replace(smaller, n_arms=smaller.n_arms + 1)
        larger = type(self)(policy, explore=self._explore)
        self.policy.carry_over(self._state, larger._state)
        return larger

    def retire(self, option: int) -> None:
        """Let a policy that plays in phases begin the open one anew without this arm."""
        self.policy.retire(self._state, option)

    def discard(self) -> None:
        """Let a policy that plays in phases begin the open one anew."""
        self.policy.forget_unreleased(self._state)


class ShufflingDecider(ArmsDecider):
    """The same from the numbers of ones in blocks of reported bits, which the learner mixes itself.

    A device flips its bit as the block asks that was open when its decision was made. A report that
    comes when that block is full already enters the next one. Blocks are flipped ever less, so such a
    bit is flipped more than its block asks. That hides no less: to flip a bit once more is to mix the
    laws of a zero and of a one, and what holds for every number of ones among the others holds for a
    mixture over that number. The reports have identities, so that a learner is a shuffler only to those
    who see what it publishes.

    Parameters
    ----------
    policy : ShuffledKLUCBCF
    explore : float
        The share of decisions that are drawn evenly from the eligible arms.
    """

    def __init__(self, policy: ShuffledKLUCBCF, *, explore: float = 0.0) -> None:
        from tacit.arms.policies.shuffled_klucb_cf import learn_from_report

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
