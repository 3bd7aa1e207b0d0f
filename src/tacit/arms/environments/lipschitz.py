"""Arms on a line whose means are a smooth function of their places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from tacit.arms.environments.base import ArmsEnvironment, Rewards, Schedule, check_means
from tacit.arms.table import Table
from tacit.core.constraints import Constraint, Count, Positive, check

_FINE = 2**16
"""How finely a function is looked at for its largest value and its steepest slope."""


def peak(x: float) -> float:
    """Return 0.9 at 0.3217 and less by 1.2 times the distance from there."""
    return 0.9 - 1.2 * abs(x - 0.3217)


def two_peaks(x: float) -> float:
    """Return the larger of a broad peak of 0.7 at 0.25 and a narrow one of 0.9 at 0.8."""
    return max(0.1, 0.7 - abs(x - 0.25), 0.9 - 4.0 * abs(x - 0.8))


def hill(x: float) -> float:
    """Return 0.9 at 0.6 and less by the square of the distance: flat where it is best."""
    return 0.9 - 2.0 * (x - 0.6) ** 2


_NAMED: dict[str, Callable[[float], float]] = {
    "peak": peak,
    "two-peaks": two_peaks,
    "hill": hill,
}
MeanFunction = Annotated[
    str | Callable[[float], float],
    Constraint(
        f"one of {', '.join(_NAMED)} or a function of x", lambda f: callable(f) or f in _NAMED
    ),
]
"""The name of a function, or one from [0, 1] to [0, 1]."""


@dataclass(frozen=True, kw_only=True)
class Lipschitz(ArmsEnvironment):
    """Arm i of n lies at (i + 1/2) / n, and its mean is a function of its place.

    Regret is measured against the largest value of the function on the whole line, so that it
    counts what is lost between the arms.

    Parameters
    ----------
    n_arms : int, default 256
        How many arms, evenly spaced.
    function : "peak", "two-peaks", "hill" or function, default "peak"
        A peak with a straight slope; a broad low one and a narrow high one; a smooth one; or a
        function of x in [0, 1] with values in [0, 1].
    rewards, spread
        As in :class:`~tacit.arms.Switching`.

    Examples
    --------
    >>> from tacit.arms import Lipschitz
    >>> environment = Lipschitz(n_arms=4, function="peak")
    >>> environment.table(seed=0, repetition=0, horizon=1).means.round(3)
    array([[0.664, 0.836, 0.536, 0.236]])
    >>> round(environment.public_parameters(horizon=1)["lipschitz"], 6)
    1.2
    """

    name: ClassVar[str] = "lipschitz"
    summary: ClassVar[str] = "arms on a line, their means a smooth function"

    n_arms: Count = 256
    function: MeanFunction = "peak"
    rewards: Rewards = "bernoulli"
    spread: Positive = 0.1

    def __post_init__(self) -> None:
        check(self)
        check_means(self, self._fine, self.rewards)

    def _values(self, places: Any) -> Any:
        f = _NAMED[self.function] if isinstance(self.function, str) else self.function
        return np.array([float(f(float(x))) for x in places])

    @cached_property
    def _fine(self) -> Any:
        return self._values(np.arange(_FINE + 1) / _FINE)

    def public_parameters(self, horizon: int) -> Mapping[str, Any]:
        """Return what every environment tells, and how steep the function is."""
        steepest = float(np.abs(np.diff(self._fine)).max() * _FINE)
        return {**super().public_parameters(horizon), "lipschitz": steepest}

    def variation_budget(self, horizon: int) -> float:
        """Return that the means do not move."""
        return 0.0

    def schedule(self, horizon: int, rng: np.random.Generator) -> Schedule:
        """Return means that never move."""
        places = (np.arange(self.n_arms) + 0.5) / self.n_arms
        return Schedule(np.zeros(1, np.int64), self._values(places)[None])

    def table(self, seed: int, repetition: int, horizon: int) -> Table:
        """Return the table of one repetition; the best is the best of the line."""
        made = super().table(seed, repetition, horizon)
        return made._replace(best=np.maximum(made.best, self._fine.max()))
