"""Guarantees as the events of dp-accounting, for those who account with that library."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tacit.privacy.mechanisms.gaussian import DiscreteGaussianRelease, GaussianRelease
from tacit.privacy.mechanisms.laplace import DiscreteLaplaceRelease, LaplaceRelease
from tacit.privacy.releases import Release, dp_accounting_for

if TYPE_CHECKING:
    from tacit.privacy.guarantees import Guarantee


def event_of(guarantee: Guarantee) -> Any:
    """Return the event of a guarantee; `Guarantee.to_dp_event` says which."""
    dp = dp_accounting_for("to_dp_event")

    if guarantee.unused:
        return dp.NoOpDpEvent()
    if not guarantee.releases:
        if not guarantee.private:
            return dp.NonPrivateDpEvent()
        return _answer(guarantee.epsilon) if guarantee.delta == 0 else dp.UnsupportedDpEvent()
    events = [
        _repeated(each, count * n)
        for release, count in guarantee.releases
        for each, n in release.parts()
        if count > 0 and each.spread > 0
    ]
    if not events:
        return dp.NoOpDpEvent()
    return events[0] if len(events) == 1 else dp.ComposedDpEvent(events)


def _repeated(release: Release, count: int) -> Any:
    import dp_accounting as dp

    event = _event(release)
    open_ended = isinstance(event, dp.NonPrivateDpEvent | dp.UnsupportedDpEvent)
    return event if count == 1 or open_ended else dp.SelfComposedDpEvent(event, count)


def _event(release: Release) -> Any:
    import dp_accounting as dp

    if isinstance(release, LaplaceRelease):
        return dp.LaplaceDpEvent(release.scale / release.sensitivity)
    if isinstance(release, GaussianRelease):
        return dp.GaussianDpEvent(release.scale / release.sensitivity)
    if isinstance(release, DiscreteLaplaceRelease):
        return dp.dp_event.DiscreteLaplaceDpEvent(1 / release.scale, release.steps)
    if isinstance(release, DiscreteGaussianRelease):
        return dp.dp_event.ZCDpEvent(rho=release.spread**2 / 2)
    if math.isfinite(release.epsilon):
        return _answer(release.epsilon)
    return dp.NonPrivateDpEvent() if release.certain > 0 else dp.UnsupportedDpEvent()


def _answer(epsilon: float) -> Any:
    import dp_accounting as dp

    # The loss of a whole number shifted by 1 is epsilon or -epsilon, as that of a flipped bit: the
    # worst that a pure epsilon allows. The event of a flipped bit itself is not counted right.
    return dp.dp_event.DiscreteLaplaceDpEvent(epsilon, 1)
