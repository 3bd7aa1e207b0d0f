"""The corrected step: what the corrected private diffusion bandits do instead of the published boxes.

Agents act in blocks of B rounds. At the start of a block they exchange probabilities and each draws
one state to name throughout; at its end each reports its mean loss in the block once, through a
private channel, and updates its belief. Three things make it learn where the published algorithms
do not.

*A channel that fits.* The report is one bit, 1 with probability f + (1 - 2 f) times the mean loss.
One loss moves the mean by 1/B only, so f = 1 / (2 + B (e^eps - 1)) gives pure eps for every loss;
nothing is divided by 2b + 1. The regret grows as sqrt(B) times the spread of the debiased report,
1 / (2 - 4 f), which is least at B = 2 / (e^eps - 1), where f = 1/4 whatever eps is: privacy costs a
factor of order eps^(-1/2) instead of eps^(-1). The other channel is Laplace noise of scale
1 / (B eps) on the mean, clamped to [-b, 1 + b].

*A centred estimate.* The report minus its middle, divided by the consensus probability P, is the
loss minus 1/2 in expectation for every state, and its range r is the smallest possible.

*A rate that needs no tuning.* Each agent uses eta = min(1 / (2 M r), sqrt(ln M / V)), where V adds up
the variance s^2 sum_theta mu(theta) / P(theta) of its own past estimates, and names a uniformly
random state with probability M r eta, so that eta times an estimate never exceeds 1 in size. Then
the usual analysis of exponential weights bounds the expected regret of the belief, against any
losses fixed in advance, by a constant times B (sqrt(V ln M) + M r ln M + r / a_kk), and V is at most
4 s^2 M (T / B) / a_kk. (Clamping adds its bias, at most 2.5% of the scale of the noise a round.)
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.kernels import kernel
from tacit.core.tapes import CHOICE, NOISE, SIGNAL, released, uniform
from tacit.diffusion.rounds import make_kernels
from tacit.diffusion.steps import add_halo, centre, consensus, draw, intermediate, mix, shares
from tacit.diffusion.table import deviation_at, loss_at, signal_at, write_truth
from tacit.diffusion.trace import record_choices
from tacit.privacy import ClampedLaplace, Mechanism, RandomizedResponse
from tacit.privacy.exact import happens
from tacit.privacy.mechanisms.clamped_laplace import release_clamped
from tacit.privacy.mechanisms.k_ary_response import release_option

OPEN, RESPONSE, LAPLACE = 0, 1, 2
OPEN_SIGNAL = 0.0
# Clamping at three scales moves the expectation by at most 2.5% of a scale.
CLAMP_SCALES = 3.0


class Params(NamedTuple):
    """What the kernel needs."""

    gamma: float
    eta: float
    """The constant learning rate; 0 adapts."""
    block: int
    """B."""
    channel: int
    """0 open, 1 response, 2 Laplace."""
    flip: float
    """Probability of a wrong report where all losses of the block agree."""
    step: float
    """1 / B, how far one loss moves the mean of a block."""
    epsilon: float
    bound: float
    """b of the clamp."""
    reach: float
    """r, the largest size of a centred report."""
    variance: float
    """s^2, the largest mean square of a centred report."""
    keep_signal: float
    """Probability that the state nearest to a signal is told truly; 0 shares in the open."""


class State(NamedTuple):
    """What N agents believe, and the block they are in."""

    mu: NDArray[np.float64]
    """Shape (N, M): beliefs."""
    log_mu: NDArray[np.float64]
    """Shape (N, M): their logarithms, 0 for the largest."""
    losses: NDArray[np.float64]
    """Shape (N, M): sums of estimated losses."""
    spread: NDArray[np.float64]
    """Shape (N,): V."""
    eta: NDArray[np.float64]
    """Shape (N,): learning rates."""
    p: NDArray[np.float64]
    """Shape (N + halo, M): what agents send."""
    P: NDArray[np.float64]
    """Shape (M,): a consensus probability, room to work."""
    choices: NDArray[np.int64]
    """Shape (N,): the states named in this block."""
    chance: NDArray[np.float64]
    """Shape (N,): the probability each had."""
    suffered: NDArray[np.float64]
    """Shape (N,): the losses of this block so far."""
    likelihood: NDArray[np.float64]
    """Shape (M, M): probability that z is told where theta is true, for the deviation that follows."""
    deviation: NDArray[np.float64]
    """Shape (1,): of the signals of the agent who told last."""


def best_block(epsilon: float) -> int:
    """Return the block length of least regret, 2 / (e^eps - 1)."""
    return max(1, round(2.0 / math.expm1(epsilon))) if epsilon < 700 else 1


def open_params(*, eta: float, gamma: float) -> Params:
    """Return the rule without privacy: exact losses, no blocks."""
    return Params(gamma, eta, 1, OPEN, 0.0, 1.0, 0.0, 0.0, 0.5, 0.25, OPEN_SIGNAL)


def params_of(
    mechanism: Mechanism, *, eta: float, gamma: float, block: int, keep_signal: float = OPEN_SIGNAL
) -> Params:
    """Return the rule whose agents report through `mechanism`: a clamped mean, or a bit about it."""
    if isinstance(mechanism, ClampedLaplace):
        step, bound, flip = mechanism.sensitivity, -mechanism.low, 0.0
        reach, variance = 0.5 + bound, 0.25 + mechanism.variance
        kind = LAPLACE
    else:
        assert isinstance(mechanism, RandomizedResponse)
        step, bound, flip = 1.0 / block, 0.0, 1.0 - mechanism.release.keep_one
        reach = 0.5 / (1.0 - 2.0 * flip)
        kind, variance = RESPONSE, reach**2
    level = mechanism.epsilon
    return Params(gamma, eta, block, kind, flip, step, level, bound, reach, variance, keep_signal)


def start(mu: NDArray[np.float64], params: Params, halo: int = 0) -> State:
    """Return the state before the first round of agents who hear `halo` others."""
    N, M = mu.shape
    cap = 1.0 / (2.0 * M * params.reach)
    return State(
        mu,
        np.zeros((N, M)),
        np.zeros((N, M)),
        np.zeros(N),
        np.full(N, min(cap, params.eta) if params.eta > 0 else cap),
        add_halo(mu, halo),
        np.zeros(M),
        np.zeros(N, np.int64),
        np.ones(N),
        np.zeros(N),
        np.zeros((M, M)),
        np.zeros(1),
    )


@kernel
def tell(params: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any) -> None:
    """Write p, what every agent sends where a block begins."""
    truth = trace.truth
    write_truth(table, t, truth)
    if t % params.block == 0:
        for k in range(state.choices.size):
            S = signal_at(table, t, k, truth[table.group[k]])
            share(params, state, tape, t, k, table.first + k, S, deviation_at(table, t, k))


@kernel
def hear(params: Any, state: Any, table: Any, tape: Any, trace: Any, t: Any) -> None:
    """Name a state where a block begins, suffer its loss, and report where the block ends."""
    truth, choices = trace.truth, state.choices
    for k in range(choices.size):
        at = table.first + k
        name_state(params, state, tape, t, k, at, table.indptr, table.senders, table.weights)
    record_choices(table, trace, t, state.mu, choices)
    for k in range(choices.size):
        loss = loss_at(table, t, k, choices[k], truth[table.group[k]])
        suffer(params, state, tape, t, k, table.first + k, loss)


KERNELS = make_kernels(tell, hear)


@kernel
def share(params: Any, state: Any, tape: Any, t: Any, k: Any, who: Any, S: Any, sigma: Any) -> None:
    """Write p_k, what the agent in row k sends; `who` is its number on the tape."""
    if params.keep_signal > OPEN_SIGNAL:
        z = _nearest_state(tape, t, who, S, state.mu.shape[1], params.keep_signal)
        if state.deviation[0] != sigma:
            state.deviation[0] = sigma
            _weigh(sigma, params.keep_signal, state.likelihood)
        _update_by(state.mu, k, state.likelihood, z, state.p)
    else:
        intermediate(state.log_mu, k, S, sigma, state.p)
    mix(state.mu, k, params.gamma, state.p)


@kernel
def name_state(
    params: Any,
    state: Any,
    tape: Any,
    t: Any,
    k: Any,
    who: Any,
    indptr: Any,
    senders: Any,
    weights: Any,
) -> None:
    """Draw the state that agent k names from round t on, where a block begins with it."""
    if t % params.block != 0:
        return
    mu, P, M = state.mu, state.P, state.mu.shape[1]
    consensus(indptr, senders, weights, state.p, k, P)
    rho = M * params.reach * state.eta[k]
    ratio = 0.0
    for theta in range(M):
        P[theta] = (1.0 - rho) * P[theta] + rho / M
        ratio += mu[k, theta] / P[theta]
    state.spread[k] += params.variance * ratio
    state.choices[k] = draw(P, uniform(tape, t, who, CHOICE))
    state.chance[k] = P[state.choices[k]]
    state.suffered[k] = 0.0


@kernel
def suffer(params: Any, state: Any, tape: Any, t: Any, k: Any, who: Any, loss: Any) -> None:
    """Add the loss of round t, and learn where a block ends with it."""
    state.suffered[k] += loss
    if t % params.block == params.block - 1:
        _learn(params, state, tape, t, k, who)


@kernel
def _learn(params: Any, state: Any, tape: Any, t: Any, k: Any, who: Any) -> None:
    """Report the mean loss of the block that ends with round t, and believe accordingly."""
    M = state.mu.shape[1]
    report = _report(params, tape, t, who, state.suffered[k] / params.block)
    state.losses[k, state.choices[k]] += report / state.chance[k]
    if params.eta == 0.0:
        state.eta[k] = min(1.0 / (2.0 * M * params.reach), math.sqrt(math.log(M) / state.spread[k]))
    for theta in range(M):
        state.log_mu[k, theta] = -state.eta[k] * state.losses[k, theta]
    centre(state.log_mu, k)
    shares(state.log_mu, k, state.mu)


@kernel
def _report(params: Any, tape: Any, t: Any, k: Any, mean: Any) -> Any:
    """Return an agent's mean loss less 1/2, as told through the channel and debiased."""
    if params.channel == RESPONSE:
        chance = params.flip + (1.0 - 2.0 * params.flip) * mean
        bit = 1.0 if happens(tape, t, k, NOISE, chance) else 0.0
        return (released(tape, bit) - 0.5) * 2.0 * params.reach
    if params.channel == LAPLACE:
        low, high = -params.bound, 1.0 + params.bound
        return (
            release_clamped(tape, t, k, NOISE, mean, params.step, params.epsilon, low, high) - 0.5
        )
    return mean - 0.5


@kernel
def _nearest_state(tape: Any, t: Any, k: Any, S: Any, M: Any, keep: Any) -> Any:
    """Return the state nearest to the signal or, with probability 1 - keep, another one."""
    return release_option(tape, t, k, SIGNAL, int(min(max(S, 0.0), M - 1.0) + 0.5), M, keep)


@kernel(inlined=False)
def _weigh(sigma: Any, keep: Any, likelihood: Any) -> None:
    """Write how likely it is that z is told where theta is true.

    A normal signal is nearest to z with the probability between z - 1/2 and z + 1/2; then z is told
    truly, or another state is.
    """
    M = likelihood.shape[0]
    other = (1.0 - keep) / max(1, M - 1)
    for theta in range(M):
        below = 0.0
        for z in range(M):
            above = 1.0
            if z < M - 1:
                above = 0.5 * math.erfc((theta - z - 0.5) / (sigma * math.sqrt(2.0)))
            likelihood[z, theta] = (keep - other) * (above - below) + other
            below = above


@kernel
def _update_by(mu: Any, k: Any, likelihood: Any, z: Any, psi: Any) -> None:
    """Write psi_k, the belief mu_k after Bayes' rule on the state z that was told (eq. 4)."""
    M = mu.shape[1]
    total = 0.0
    for theta in range(M):
        psi[k, theta] = mu[k, theta] * likelihood[z, theta]
        total += psi[k, theta]
    for theta in range(M):
        psi[k, theta] = psi[k, theta] / total if total > 0.0 else mu[k, theta]
