"""What a device is asked about a reward, where it tells how the reward relates to the prediction.

A question is fixed when the decision is made. It asks in which bin around the prediction the reward lies
or, every twentieth time where the spread of rewards is learned, whether it is near. A policy that asks for
the reward itself has None in the place of `Bins`, and its questions say nothing.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.contextual.ridge import carve, component, copy_block
from tacit.core.kernels import kernel
from tacit.core.tapes import NOISE
from tacit.privacy.mechanisms import privatise
from tacit.privacy.mechanisms.k_ary_response import release_option

VALUE, BIN, NEAR = 0, 1, 2
"""Kinds of a question."""
CHECK_EVERY = 20
"""Every so many questions one is about the spread of rewards, where that is learned."""
WITHIN_ONE = math.erf(math.sqrt(0.5))
"""The probability that a normal is within one standard deviation."""


class Bins(NamedTuple):
    """How residuals are told: k bins of a standard normal, by k-ary response."""

    cuts: NDArray[np.float64]
    """Shape (k - 1,): where bins end."""
    gains: NDArray[np.float64]
    """Shape (k,): the expected residual for each answer."""
    keep: float
    """The probability with which a bin is told truly."""
    information: float
    """J: the share of a reward's information that its answer keeps, the mean squared gain."""
    near_keep: float
    """The probability with which it is told truly whether a reward is near."""
    learns_sigma: int
    log_sigma: float
    """The standard deviation of rewards: whether it is learned, and what it begins with."""


class Question(NamedTuple):
    """What a device is asked about a reward, fixed when the decision is made."""

    kind: int
    """0 for the reward itself, 1 for its bin around the prediction, 2 for whether it is near."""
    mean: float
    """The prediction, within the range of rewards."""
    scale: float
    """The standard deviation that rewards are predicted to have around it."""
    variance: float
    """The variance of the answer, taken as an observation of the expected reward."""


def new_deviation(bins: Bins) -> NDArray[np.float64]:
    """Return log sigma, the standard deviation of rewards, and how often it was corrected: never."""
    return np.array([bins.log_sigma, 0.0])


def cuts_of(bins: Bins, question: Question) -> list[float]:
    """Return the cuts that a device compares a reward with, as `answer_question` has them."""
    if question.kind == NEAR:
        return [question.mean - question.scale, question.mean + question.scale]
    return [question.mean + question.scale * cut for cut in bins.cuts.tolist()]


@kernel
def make_question(bins: Any, channel: Any, state: Any, i: Any, x: Any) -> Any:
    """Return the question about the reward of context x, offered to the person at place i."""
    if bins is None:
        return Question(VALUE, 0.0, 1.0, 1.0)
    d, ridge = x.size, state.ridge
    p, C = carve(state.work, d)
    copy_block(component(ridge, i), C)
    mean, square = 0.0, 0.0
    for a in range(d):
        p[a] = 0.0
        for b in range(d):
            p[a] += C[a, b] * x[b]
    for a in range(d):
        mean += x[a] * ridge.mean[i, a]
        square += x[a] * p[a]
    total = math.exp(2.0 * state.deviation[0]) + max(square, 0.0)
    near = bins.learns_sigma == 1 and state.rounds[0] % CHECK_EVERY == 0
    return Question(
        NEAR if near else BIN,
        min(channel.high, max(channel.low, mean)),
        math.sqrt(total),
        total / bins.information - square,
    )


@kernel
def answer_question(bins: Any, channel: Any, tape: Any, t: Any, question: Any, reward: Any) -> Any:
    """Return what a device tells of a reward: the device's half, which sees no state."""
    if bins is None:
        clipped = min(channel.high, max(channel.low, reward))
        return privatise(channel.report, tape, t, 0, NOISE, clipped)
    if question.kind == NEAR:
        low, high = question.mean - question.scale, question.mean + question.scale
        near = 1 if low < reward and not high < reward else 0
        return float(release_option(tape, t, 0, NOISE, near, 2, bins.near_keep))
    symbol = 0
    for cut in bins.cuts:
        symbol += 1 if question.mean + question.scale * cut < reward else 0
    return float(release_option(tape, t, 0, NOISE, symbol, bins.gains.size, bins.keep))


@kernel
def learn_deviation(bins: Any, deviation: Any, question: Any, answer: Any) -> Any:
    """Correct sigma by an answer that says whether the reward was near; return whether it does."""
    if bins is None:
        return False
    if question.kind != NEAR:
        return False
    deviation[1] += 1.0
    step = 2.0 * (deviation[1] + 9.0) ** -0.6
    p = bins.near_keep
    deviation[0] += step * ((2.0 * p - 1.0) * WITHIN_ONE - (answer - (1.0 - p)))
    return True


@kernel
def read_answer(bins: Any, question: Any, answer: Any) -> Any:
    """Return an answer as an observation of the expected reward, and its variance."""
    if bins is None:
        return answer, 1.0
    y = question.mean + bins.gains[int(answer)] * question.scale / bins.information
    return y, question.variance
