"""What each user's reports add up to, from which a state can be made anew.

People come, edges change: then K changes, and with it everything that a state has multiplied out.
But what a user's reports say about that user does not: two sums for each of them, over all reports
taken in, are enough to begin again as if K had always been the new one. Where reports do not depend
on predictions that equals starting over with the same reports, up to rounding. The bins of
`Residual` were chosen around the predictions of the time; then it is the same reports, understood as
they were, under the new K.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.model import Params, State, learn_prior
from tacit.contextual.ridge import Ridge, recompute

_STEPS_ANEW = 20
"""Steps from where the learning of a prior begins."""


class Statistics(NamedTuple):
    """Sums over the reports of N users, in the order of users."""

    gram: NDArray[np.float64]
    """Shape (N, d, d): of xx' / v."""
    response: NDArray[np.float64]
    """Shape (N, d): of x y / v, where y is the estimate that a report gave and v its variance."""
    rounds: NDArray[np.int64]
    """Shape (2,): questions asked, and answers taken in."""
    ones: NDArray[np.float64]
    """Shape (N, d): of x / v, where the level of rewards is learned, else (0, d)."""
    reports: NDArray[np.float64]
    """Shape (4,): of 1 / v and of y / v, of all users; what they say of the level."""
    deviation: NDArray[np.float64]
    """Shape (2,): log sigma, and how often it was corrected."""

    def arranged(self, users: NDArray[np.int64]) -> Statistics:
        """Return the statistics of other users: their old numbers, -1 for who is new."""
        old = np.asarray(users, np.int64)
        known = (old >= 0)[:, None]
        gram = np.where(known[:, :, None], self.gram[old], 0.0)
        response = np.where(known, self.response[old], 0.0)
        ones = np.where(known, self.ones[old], 0.0) if len(self.ones) else self.ones
        return self._replace(gram=gram, response=response, ones=ones)


def statistics_of(state: State) -> Statistics:
    """Return what the reports taken in by a state add up to."""
    ridge, level, spread = state.ridge, state.level, state.deviation
    return Statistics(
        ridge.gram[ridge.place],
        ridge.response[ridge.place],
        state.rounds.copy(),
        np.empty((0, ridge.mean.shape[1])) if level is None else level.ones[ridge.place],
        np.zeros(4) if level is None else level.reports.copy(),
        np.zeros(2) if spread is None else spread.copy(),
    )


def restore(params: Params, fresh: State, statistics: Statistics) -> State:
    """Return a fresh state that has taken in what the statistics say; a prior is learned anew."""
    ridge, level = fresh.ridge, fresh.level
    ridge.gram[ridge.place] = statistics.gram
    ridge.response[ridge.place] = statistics.response
    fresh.rounds[:] = statistics.rounds
    if level is not None:
        level.ones[ridge.place] = statistics.ones
        level.reports[:] = statistics.reports
    if fresh.deviation is not None:
        fresh.deviation[:] = statistics.deviation
    before = _log_volume(ridge)
    recompute(ridge, level)
    if params.prior is not None:
        learn_prior(params, fresh, _STEPS_ANEW)
    ridge.log_volume[0] = before
    ridge.energy[0] = float(ridge.kernel_diagonal @ np.trace(ridge.gram, axis1=1, axis2=2))
    return fresh


def _log_volume(ridge: Ridge) -> float:
    """Return the logarithm of |I + K Phi| over all components."""
    n_users, d = ridge.response.shape
    i, total = 0, 0.0
    while i < n_users:
        size, at = int(ridge.layout[i, 1]), int(ridge.layout[i, 4]) // (d * d)
        K = ridge.kernel[at : at + size * size].reshape(size, size)
        system = np.einsum("uv,vab->uavb", K, ridge.gram[i : i + size]).reshape(size * d, size * d)
        total += float(np.linalg.slogdet(np.eye(size * d) + system)[1])
        i += size
    return total
