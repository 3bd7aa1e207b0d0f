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

from tacit.contextual.collaborative import Params, State, rebuild, relearn
from tacit.contextual.learned_prior import GIVEN

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
    return Statistics(
        state.gram[state.place],
        state.response[state.place],
        state.rounds.copy(),
        state.ones[state.place] if len(state.ones) else state.ones.copy(),
        state.reports.copy(),
        state.deviation.copy(),
    )


def restored(params: Params, fresh: State, statistics: Statistics) -> State:
    """Return a fresh state that has taken in what the statistics say; a prior is learned anew."""
    fresh.gram[fresh.place] = statistics.gram
    fresh.response[fresh.place] = statistics.response
    fresh.rounds[:] = statistics.rounds
    if len(fresh.ones):
        fresh.ones[fresh.place] = statistics.ones
    fresh.reports[:] = statistics.reports
    fresh.deviation[:] = statistics.deviation
    before = _log_volume(fresh)
    rebuild(fresh)
    if params.learns != GIVEN:
        relearn(params, fresh, _STEPS_ANEW)
    fresh.log_volume[0] = before
    traces = np.trace(fresh.gram, axis1=1, axis2=2)
    fresh.energy[0] = float(fresh.kernel_diagonal @ traces)
    return fresh


def _log_volume(state: State) -> float:
    """Return the logarithm of |I + K Phi| over all components."""
    n_users, d = state.response.shape
    i, total = 0, 0.0
    while i < n_users:
        size, at = int(state.layout[i, 1]), int(state.layout[i, 4]) // (d * d)
        K = state.kernel[at : at + size * size].reshape(size, size)
        system = np.einsum("uv,vab->uavb", K, state.gram[i : i + size]).reshape(size * d, size * d)
        total += float(np.linalg.slogdet(np.eye(size * d) + system)[1])
        i += size
    return total
