"""SW-KLUCB-CF: learn from corrupted feedback in an environment that changes.

Each person's reward is corrupted before it leaves them; randomized response makes that locally private.
The learner keeps the last `window` rounds, bounds each arm's mean *feedback* by a Kullback-Leibler
confidence interval, and maps the bound back through the corruption function. Gajane (2023), Algorithm 1.

Departures: the window has a log factor by default (the paper's lacks it and is too short); `min` in
the definition of the window is read as `max`; indices are clipped to [0, 1], an arm unseen in the window
has index 1, ties are broken at random and f is floored at 0.

Where means drift, a window follows from a budget V instead: the sum over rounds of the largest change of
any mean. In a window of w rounds drift misleads each of T decisions by at most what the means move, 2 w V
in all; what w rounds do not tell costs 2 T sqrt(2 K ln(T) / w) / s in all, with s the slope of the
corruption (Pinsker's inequality). The sum is least at w = (T / (s V))^(2/3) (K ln(T) / 2)^(1/3). Besbes, Gur
and Zeevi (2014) and Cheung, Simchi-Levi and Zhu (2019) have the same power of T / V.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from tacit.arms.corruption import Corruption
from tacit.arms.klucb_index import (
    ExplorationFunction,
    largest_index,
    level,
    level_at,
    probabilities,
    tabulate_exploration,
)
from tacit.arms.local_policy import LocalPolicy
from tacit.arms.loops import local_kernels
from tacit.arms.policies.klucb import Params, State, count, drop, first_untried, new_state
from tacit.arms.policy import Kernels
from tacit.arms.table import Table
from tacit.arms.window import forget_with, put_in_window
from tacit.core.constraints import Constraint, Count, NonNegative, require
from tacit.core.kernels import kernel
from tacit.privacy import Claim, Guarantee
from tacit.privacy.mechanisms import Epsilon

forget = forget_with(drop)


@kernel
def select(params: Any, state: Any, tape: Any, t: Any, eligible: Any) -> Any:
    """Forget what left the window; pull every arm once, then the one with the largest index."""
    forget(params, state, state.window, t)
    arm = first_untried(state, eligible) if state.untried[0] > 0 else -1
    if arm < 0:
        f = params.level if params.window <= t else level(params.exploration, float(t))  # f(t ^ w)
        arm = largest_index(params.feedback.ends, state, tape, t, eligible, f)
    return arm


@kernel
def learn_from_report(params: Any, state: Any, t: Any, arm: Any, feedback: Any) -> None:
    """Add the feedback to the arm's sum, unless its round has left the window."""
    if put_in_window(state.window, t, arm, feedback):
        count(params, state, t, arm, feedback)


@dataclass(frozen=True, kw_only=True)
class SWKLUCBCF(LocalPolicy[State]):
    """Sliding-window kl-UCB on corrupted feedback.

    Guarantee: pure local differential privacy with `epsilon` for each single reward, over the whole
    run. The n rewards of one person cost n epsilon; the window does not cap that.

    Parameters
    ----------
    horizon : int
        Number of rounds T, for the window.
    n_segments : int, default 1
        L, the number of stationary segments, for the window.
    window : "log", "published", "variation" or int, default "log"
        sqrt(4 e T ln T / (L + 4)), the published sqrt(4 e T / (L + 4)), the one that follows from
        `variation`, or a number of rounds. "paper", the word of version 0.2 for "published", is still read.
    variation : float, optional
        V, the sum over rounds of the largest change of any mean, for ``window="variation"``.

    Examples
    --------
    >>> from tacit.arms import SWKLUCBCF
    >>> policy = SWKLUCBCF(n_arms=2, horizon=100_000, n_segments=10, epsilon=1.0)
    >>> policy.window_rounds
    945
    >>> round(policy.guarantee(horizon=100_000).epsilon, 9)
    1.0

    References
    ----------
    Gajane. Local Differential Privacy for Sequential Decision Making in a Changing Environment. 2023.
    """

    name: ClassVar[str] = "sw-klucb-cf"
    summary: ClassVar[str] = (
        "sliding-window kl-UCB on locally private feedback, changing environment"
    )
    paper: ClassVar[str] = "003 Alg. 1"
    kernels: ClassVar[Kernels] = local_kernels(
        select, learn_from_report, probabilities=probabilities
    )

    horizon: Count
    n_segments: Count = 1
    epsilon: Epsilon | None = None
    corruption: Corruption | None = None
    window: Annotated[
        int | str,
        Constraint(
            "log, published, variation or a number of rounds >= 1",
            lambda w: w in ("log", "published", "paper", "variation") or w >= 1,
        ),
    ] = "log"
    variation: NonNegative | None = None
    exploration: ExplorationFunction = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.window != "variation" or self.variation is not None
        require(self, "variation", "given, for the window", given, self.variation)
        _ = self.params

    @property
    def window_rounds(self) -> int:
        """The window w in rounds."""
        if not isinstance(self.window, str):
            return int(self.window)
        T = self.horizon
        log = math.log(max(T, math.e))
        if self.window == "variation":
            slope = float(np.abs(np.diff(self.feedback.ends)).min())
            drift = slope * (self.variation or 0.0)
            most = (T / drift) ** (2 / 3) * (self.n_arms * log / 2) ** (1 / 3) if drift > 0 else T
            return max(1, math.floor(min(most, T)))
        scale = 4 * math.e * T / (self.n_segments + 4) * (log if self.window == "log" else 1.0)
        return max(1, math.floor(math.sqrt(scale)))

    def guarantee(self, horizon: int) -> Guarantee:
        """Return epsilon for each reward, and that the paper's wording claims more."""
        if self.epsilon is None:
            return self.local_guarantee()
        claim = Claim(
            epsilon=self.epsilon,
            delta=0.0,
            unit="user",
            trust="local",
            span="run",
            holds=False,
            why="Definition 2 speaks of whole reward sequences; n rewards of one person compose",
        )
        return self.local_guarantee(claim)

    @cached_property
    def params(self) -> Params:
        """The numbers the kernels need."""
        f = tabulate_exploration(self, self.exploration)
        w = self.window_rounds
        return Params(f, self.feedback, window=w, level=float(level_at(f, float(w))))

    def start(self, table: Table | None = None) -> State:
        """Return a state that has seen nothing."""
        return new_state(self.n_arms, self.window_rounds)
