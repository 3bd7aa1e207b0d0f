"""One model for all policies that learn from rewards: ridge regression, and the parts that a policy uses.

`ridge` is in every state. A `level` that rewards have in common, `sums` released with noise, `questions`
about residuals, a prior that is learned, answers that fade and a watch over changes are None where a policy
has no use for them. Kernels are compiled for what is there: None takes no memory, time or compilation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.learned_prior import CLUSTERS, STEPS, cluster, due, improve, overwrite
from tacit.contextual.level import (
    Level,
    fade_level,
    new_level,
    subtract_from_all,
    subtract_level,
)
from tacit.contextual.loops import rounds
from tacit.contextual.noisy_sums import (
    Sums,
    add_predictions,
    new_sums,
    noise_in_width,
    release_sum,
    scratch_size,
    stream_of,
)
from tacit.contextual.privacy import Channel
from tacit.contextual.questions import (
    answer_question,
    learn_deviation,
    make_question,
    new_deviation,
    read_answer,
)
from tacit.contextual.ridge import (
    Block,
    Ridge,
    carve,
    choose_slot,
    component,
    copy_block,
    new_ridge,
    observe,
    recompute,
)
from tacit.core.arrays import leaves
from tacit.core.kernels import kernel

CONSTANT, LEMMA_2, EQUATION_5 = 0, 1, 2
"""The width of the confidence bound: a constant, Lemmas 2 and 4, or equations 5 and 7."""
_OPTIONAL = (*Level._fields, *Sums._fields, "deviation")
"""What 0.2 stored of every policy, used or not."""


class Fade(NamedTuple):
    """How earlier answers lose their weight."""

    every: int
    """After so many answers."""
    to: float
    """By this factor."""


class Prior(NamedTuple):
    """What is learned of the prior."""

    learns: int
    """One of the codes of ``learned_prior``."""
    rank: int
    """Of how many factors it is made; 0 for any number."""
    noise: float
    """The variance of a report, where all have the same."""


class Watch(NamedTuple):
    """Page's test for changes."""

    deviation: float
    """Of a told reward, as far as it is known beforehand."""
    shift: float
    """delta, in such deviations."""
    alpha: float


class Params(NamedTuple):
    """The numbers the kernels need."""

    regularisation: float
    """lambda."""
    width: int
    """How the width alpha is found, one of the codes above."""
    exploration: float
    """The constant width."""
    failure_prob: float
    """delta of Lemma 2."""
    reach: float
    """R: reports scatter around their mean no more than a normal of this standard deviation."""
    channel: Channel
    """How rewards are hidden."""
    fade: Fade | None = None
    prior: Prior | None = None
    watch: Watch | None = None


class State(NamedTuple):
    """What is learned; parts that the policy does not use are None."""

    ridge: Ridge
    norm_bound: NDArray[np.float64]
    """Shape (1,): the bound on all parameters together that the width rests on."""
    rounds: NDArray[np.int64]
    """Shape (2,): questions asked, and answers taken in."""
    work: NDArray[np.float64]
    """Flat scratch; nothing that is learned."""
    level: Level | None = None
    deviation: NDArray[np.float64] | None = None
    """Shape (2,): log sigma, the standard deviation of rewards, and how often it was corrected."""
    sums: Sums | None = None
    watch: NDArray[np.float64] | None = None
    """Shape (N, 4): both sums of Page's test, errors and restarts so far."""

    @property
    def formerly(self) -> dict[str, str]:
        """What 0.2 called each array."""
        return {name.rpartition(".")[2]: name for name, _ in leaves(self)}

    @property
    def dropped(self) -> tuple[str, ...]:
        """What 0.2 stored beside these."""
        return tuple(name for name in _OPTIONAL if name not in self.formerly)


def new_state(
    params: Params,
    blocks: Sequence[Block],
    n_users: int,
    dimension: int,
    scales: NDArray[np.float64],
    norm_bound: float,
) -> State:
    """Return a state that has seen nothing.

    Parameters
    ----------
    params : Params
    blocks : sequence of Block
        The matrix B; every person is a member of one block.
    n_users, dimension : int
    scales : array of shape (streams, 4)
        What sets the noise of each stream, in the order of people; empty where sums get none.
    norm_bound : float
        What the width of theory rests on.
    """
    channel, d = params.channel, dimension
    ridge = new_ridge(blocks, n_users, d, params.regularisation)
    streams, bins = channel.streams, channel.bins
    sums = None if streams is None else new_sums(streams, blocks, ridge, scales)
    return State(
        ridge=ridge,
        norm_bound=np.array([norm_bound], np.float64),
        rounds=np.zeros(2, np.int64),
        work=np.zeros(max(2 * d, scratch_size(sums), d * (d + 1))),
        level=new_level(n_users, d) if channel.centred else None,
        deviation=None if bins is None else new_deviation(bins),
        sums=sums,
        watch=None if params.watch is None else np.zeros((n_users, 4)),
    )


@kernel
def _predict(state: Any, i: Any, p: Any) -> None:
    """Write the coefficients of the predictions for the person at place i into p."""
    for a in range(p.size):
        p[a] = state.ridge.mean[i, a]
    subtract_level(state.level, i, p)
    add_predictions(state.sums, state.ridge, i, p)


@kernel
def _width(params: Any, state: Any) -> Any:
    """Return alpha_t: the constant, Lemma 2 (local: 4), or equation 5 (local: 7)."""
    if params.width == CONSTANT:
        return params.exploration
    D, lam = state.ridge.mean.size, params.regularisation
    log_delta = math.log(params.failure_prob)
    volume = state.ridge.log_volume[0]
    if params.width == LEMMA_2:
        volume = D * math.log1p(state.ridge.energy[0] / (lam * D))
    noise = noise_in_width(state.sums, params.channel.streams, params.width == LEMMA_2)
    return (
        params.reach * math.sqrt(volume - 2.0 * log_delta)
        + math.sqrt(lam) * state.norm_bound[0]
        - log_delta * math.sqrt(noise)
    )


@kernel
def select(params: Any, state: Any, user: Any, contexts: Any, scratch: Any) -> Any:
    """Return the slot with the largest upper confidence bound (line 5 of Algorithm 1).

    `scratch` has the shape of `contexts`.
    """
    i = state.ridge.place[user]
    p, C = carve(state.work, contexts.shape[1])
    _predict(state, i, p)
    copy_block(component(state.ridge, i), C)
    return choose_slot(contexts, p, C, _width(params, state), scratch)


@kernel
def ask(params: Any, state: Any, user: Any, x: Any) -> Any:
    """Return the question about the reward of context x; it must not change until it is answered."""
    state.rounds[0] += 1
    return make_question(params.channel.bins, params.channel, state, state.ridge.place[user], x)


@kernel
def answer(params: Any, tape: Any, t: Any, question: Any, reward: Any) -> Any:
    """Return what a device tells of a reward: the device's half, which sees no state."""
    return answer_question(params.channel.bins, params.channel, tape, t, question, reward)


@kernel
def learn(params: Any, state: Any, tape: Any, t: Any, user: Any, x: Any, reward: Any) -> Any:
    """Hide the reward of context x and take in what is told of it (lines 7 to 9 of Algorithm 1).

    Return False if it is not taken in, because the stream is calibrated for no more rounds.
    """
    question = ask(params, state, user, x)
    return _hide(params.channel.streams, params, state, tape, t, user, x, question, reward)


@kernel
def _hide(
    streams: Any,
    params: Any,
    state: Any,
    tape: Any,
    t: Any,
    user: Any,
    x: Any,
    question: Any,
    reward: Any,
) -> Any:
    if streams is None:
        take(params, state, user, x, question, answer(params, tape, t, question, reward))
        return True
    i = state.ridge.place[user]
    s = stream_of(streams, i)
    if state.sums.steps[s] >= streams.stream.capacity:
        return False
    take(params, state, user, x, question, 0.0)
    clipped = min(params.channel.high, max(params.channel.low, reward))
    release_sum(params, state, tape, t, i, s, x, clipped)
    return True


@kernel
def take(params: Any, state: Any, user: Any, x: Any, question: Any, answer: Any) -> None:
    """Take in an answer about context x: the server's half, which never sees a reward."""
    state.rounds[1] += 1
    _fade_when_due(params.fade, state)
    _learn_prior_when_due(params.prior, params, state)
    bins = params.channel.bins
    if learn_deviation(bins, state.deviation, question, answer):
        return
    y, v = read_answer(bins, question, answer)
    observe(state.ridge, state.level, state.ridge.place[user], x, y, v)


@kernel(inlined=False)
def _fade_when_due(fade: Any, state: Any) -> None:
    """Let all earlier answers count less, and begin anew with what is left of them."""
    if fade is None:
        return
    if state.rounds[1] % fade.every != 0:
        return
    ridge = state.ridge
    n_users, d = ridge.response.shape
    for i in range(n_users):
        for a in range(d):
            ridge.response[i, a] *= fade.to
            for b in range(d):
                ridge.gram[i, a, b] *= fade.to
    fade_level(state.level, fade.to)
    recompute(ridge, state.level)


@kernel
def _learn_prior_when_due(prior: Any, params: Any, state: Any) -> None:
    if prior is None:
        return
    if due(state.rounds[1]):
        learn_prior(params, state, STEPS)


@kernel(inlined=False)
def learn_prior(params: Any, state: Any, steps: Any) -> None:
    """Learn the prior from the sums of all people, and begin anew with it.

    All people are one component. What was reported is private already, so that this costs nothing.
    """
    prior, ridge, level = params.prior, state.ridge, state.level
    n_users, d = ridge.response.shape
    K, mean = ridge.kernel.reshape(n_users, n_users), ridge.mean
    S = ridge.covariance.reshape(n_users * d, n_users * d)
    if prior.learns == CLUSTERS:
        overwrite(mean, ridge.response)
        subtract_from_all(level, mean, True)
        cluster(K, ridge.gram, mean, params.regularisation, prior.noise)
    else:
        for _ in range(steps):
            recompute(ridge, level)
            subtract_from_all(level, mean, False)
            improve(K, ridge.within, S, mean.reshape(-1), prior.noise, prior.rank)
    recompute(ridge, level)


@kernel(inlined=False)
def parameter_error(params: Any, state: Any, preferences: Any) -> Any:
    """Return the distance of all people's predictions from the truth."""
    p, _ = carve(state.work, preferences.shape[1])
    total = 0.0
    for user in range(preferences.shape[0]):
        _predict(state, state.ridge.place[user], p)
        for a in range(p.size):
            total += (p[a] - preferences[user, a]) * (p[a] - preferences[user, a])
    return math.sqrt(total)


play = rounds(select, learn, parameter_error)
