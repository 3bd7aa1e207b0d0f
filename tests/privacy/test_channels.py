"""Mechanisms declare what they do: on seeded and secure tapes, on devices, at any epsilon."""

from __future__ import annotations

import dataclasses
import itertools
import math
import pickle
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from oracles.device import bit_probabilities, estimator, probabilities
from tacit.core.kernels import INTERPRETED, kernel
from tacit.core.tapes import NOISE, secure_tape, seeded_tape
from tacit.device import MAX_EPSILON
from tacit.device import Channel as Device
from tacit.device.instructions import MIN_EPSILON
from tacit.privacy import (
    AsymmetricResponse,
    KAryResponse,
    Laplace,
    Mechanism,
    Piecewise,
    PureRelease,
    RandomizedResponse,
    RandomizedResponseRelease,
    Staircase,
    UnaryEncoding,
    composed_epsilon,
    keep_probability,
    least_private,
)
from tacit.privacy.mechanisms import (
    HIGHEST_EPSILON,
    LOWEST_EPSILON,
    debias,
    open_channel,
    privatise,
    registry,
)
from tacit.privacy.releases import release_from_dict

FALSE_ALARM = 1e-6
LEAST: dict[str, Any] = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "dimension": 1,
    "options": 5,
    "low": -40.0,
    "high": 41.0,
    "bound": 6.0,
    "horizon": 5,
    "keep_one": 0.6,
    "keep_zero": 0.85,
    "reports": 30,
}


def built(kind: type[Mechanism], **changes: Any) -> Mechanism:
    known = {field.name for field in dataclasses.fields(kind) if field.init}
    known -= {"delta"} if kind.name == "binary-tree" else set()  # which has one of its own
    return kind(**{name: value for name, value in (LEAST | changes).items() if name in known})


KINDS = registry()
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
BIASED = {"bounded-noise"}
NO_DEVICE = {"bounded-noise", "gaussian", "l2-ball", "l2-calibrated-laplace", "staircase"}
GAUSSIAN = {"gaussian", "gaussian-moments", "square-root-toeplitz"}
SUMS = {"binary-tree", "square-root-toeplitz"}
NO_DEVICE |= {"gaussian-moments", "shuffled-bits", "subset-selection", *SUMS}


def make_channel(mechanism: Mechanism, low: float = 0.0, high: float = 1.0) -> Any:
    try:
        return mechanism.channel(low, high)
    except ValueError:
        return None


def test_every_file_is_found() -> None:
    assert {"laplace", "staircase", "randomized-response", "k-ary-response", "gaussian"} <= set(
        KINDS
    )
    assert len({kind.__module__ for kind in KINDS.values()}) >= 10
    assert all(kind.summary and kind.__doc__ for kind in KINDS.values())


@every_kind
def test_a_channel_is_unbiased_and_no_noisier_than_said(kind: type[Mechanism]) -> None:
    """5 standard errors on either tape; a shift of a tenth of the range is found."""
    mechanism = built(kind)
    channel = make_channel(mechanism, -1.0, 3.0)
    if channel is None or kind.name in BIASED:
        return
    n = 200 if INTERPRETED else 30_000
    for tape in (seeded_tape(1), secure_tape()):
        for value in (-1.0, 0.3, 3.0):
            told = spread_over(channel, tape, value, n)
            error = told.std() / math.sqrt(n)
            assert abs(told.mean() - value) < 5 * error + 1e-9
            spread = np.var((told - told.mean()) ** 2) ** 0.5 / math.sqrt(n)
            assert told.var() < 16 * mechanism.channel_variance * 1.001 + 5 * spread
            if not INTERPRETED:
                assert abs(told.mean() - value - 0.4) > 5 * error or error > 0.04
        assert tape.reads[1] == 3 * n


def spread_over(channel: Any, tape: Any, value: float, n: int) -> np.ndarray:
    out = np.empty(n)
    _repeat(channel, tape, value, int(tape.reads[1]), out)
    return out


@kernel
def _repeat(channel, tape, value, first, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = privatise(channel, tape, first + i, 3, NOISE, value)


@every_kind
def test_the_stated_range_of_epsilon_and_nothing_else(kind: type[Mechanism]) -> None:
    for epsilon in (LOWEST_EPSILON, 1e-6, 0.01, 1.0, 10.0, HIGHEST_EPSILON):
        if "epsilon" not in {f.name for f in dataclasses.fields(kind) if f.init}:
            break
        mechanism = built(kind, epsilon=epsilon)
        value = mechanism.worst_pairs()[0].right
        assert np.isfinite(mechanism.run(value, 3, seed=1)).all()
        assert mechanism.variance > 0
        assert math.isfinite(mechanism.channel_variance)
        # Published noise keeps no epsilon, Gaussian noise none without a delta.
        if kind.name not in ("bounded-noise", *GAUSSIAN):
            assert mechanism.release.epsilon <= epsilon * (1 + 1e-12)
            assert mechanism.release.epsilon > 0.99 * epsilon
        if mechanism.secure:
            assert np.isfinite(mechanism.run(value, 3)).all()
            if kind.name not in GAUSSIAN:
                assert mechanism.secure_release.epsilon <= epsilon * (1 + 1e-12)
        channel = make_channel(mechanism)
        if channel is not None:
            tapes = [seeded_tape(0), *([secure_tape()] if mechanism.secure else [])]
            assert all(math.isfinite(privatise(channel, t, 0, 0, NOISE, 0.4)) for t in tapes)
    for epsilon in (0.0, 9e-10, 30.5, math.inf, math.nan, -1.0):
        if kind is AsymmetricResponse:
            continue
        with pytest.raises(
            ValueError, match=f"^{kind.__name__}: expected epsilon between 1e-9 and"
        ):
            built(kind, epsilon=epsilon)


def test_the_range_is_that_of_devices() -> None:
    assert (LOWEST_EPSILON, HIGHEST_EPSILON) == (MIN_EPSILON, MAX_EPSILON)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 12.0, 30.0])
@pytest.mark.parametrize("others", [1, 2, 7, 1000])
def test_the_probability_of_the_truth_is_exact(epsilon: float, others: int) -> None:
    from mpmath import mp, mpf

    mp.dps = 60
    exact = mp.exp(mpf(epsilon)) / (mp.exp(mpf(epsilon)) + others)
    keep = mpf(keep_probability(epsilon, others))
    # Rounding down, and a margin of 2^-40 of epsilon.
    assert 0 <= exact - keep < 2**-52 + exact * (1 - exact) * (epsilon * 2**-39 + 2**-9)
    assert keep * others / (1 - keep) <= mp.exp(mpf(epsilon))


@pytest.mark.parametrize(
    "make",
    [
        lambda e: RandomizedResponse(epsilon=e),
        lambda e: AsymmetricResponse(keep_one=0.5, keep_zero=keep_probability(e)),
        lambda e: KAryResponse(epsilon=e, options=2),
        lambda e: KAryResponse(epsilon=e, options=7),
        lambda e: Piecewise(epsilon=e),
    ],
    ids=["response", "asymmetric", "2-ary", "7-ary", "piecewise"],
)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 8.0])
@pytest.mark.parametrize("value", [-1.0, -0.37, 2.0])
def test_a_device_sends_what_the_channel_sends(make: Any, epsilon: float, value: float) -> None:
    """Chi-square of a secure tape against the device's fractions; a neighbouring value is found."""
    mechanism = make(epsilon)
    asked = mechanism.instructions(low=-1.0, high=2.0)
    channel = mechanism.channel(-1.0, 2.0)
    assert Device(asked).epsilon <= mechanism.release.epsilon * (1 + 1e-9)
    assert Device(asked).epsilon == pytest.approx(mechanism.release.epsilon, rel=1e-9)
    slope, intercept = estimator(asked)
    assert channel.numbers[1] == pytest.approx(float(slope), rel=1e-9)
    assert channel.numbers[0] == pytest.approx(float(intercept), rel=1e-9, abs=1e-9)
    exact = probabilities(asked, value)
    law = np.array([float(exact.get(symbol, Fraction(0))) for symbol in range(max(exact) + 1)])
    n = 200 if INTERPRETED else 40_000
    told = spread_over(channel, secure_tape(), value, n)
    symbols = np.rint((told - channel.numbers[0]) / channel.numbers[1]).astype(int)
    sent, places = np.unique(symbols, return_inverse=True)
    values = np.array([debias(channel, float(s)) for s in sent])
    np.testing.assert_array_equal(told, values[places])
    assert p_value(symbols, law) > FALSE_ALARM
    if epsilon >= 1 and not INTERPRETED:
        other = probabilities(asked, 0.5)
        wrong = np.array([float(other.get(symbol, Fraction(0))) for symbol in range(law.size)])
        assert p_value(symbols, wrong) < FALSE_ALARM


def p_value(symbols: np.ndarray, law: np.ndarray) -> float:
    found = np.bincount(symbols, minlength=law.size)
    if found.size > law.size or (found[law == 0] > 0).any():
        return 0.0
    keep = law * symbols.size > 5
    seen = np.append(found[keep], found[~keep].sum())
    expected = np.append(law[keep], law[~keep].sum()) * symbols.size
    if expected[-1] < 5:
        seen, expected = seen[:-1], expected[:-1] * seen[:-1].sum() / expected[:-1].sum()
    return float(stats.chisquare(seen, expected).pvalue) if seen.size > 1 else 1.0


@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 30.0])
def test_noise_of_devices_is_that_of_channels(epsilon: float) -> None:
    laplace = Laplace(epsilon=epsilon)
    asked, channel = laplace.instructions(low=0.0, high=4.0), laplace.channel(0.0, 4.0)
    assert asked["answer"]["scale"] == int(channel.numbers[5]) == laplace.channel_release.scale
    assert asked["question"]["levels"] - 1 == laplace.channel_release.steps
    slope, intercept = estimator(asked)
    assert (channel.numbers[1], channel.numbers[0]) == (float(slope), float(intercept))
    assert laplace.channel_release.epsilon <= epsilon
    told = spread_over(channel, secure_tape(), 1.0, 20)
    steps = (told - channel.numbers[0]) / channel.numbers[1]
    np.testing.assert_array_equal(steps, np.rint(steps))


@pytest.mark.parametrize("optimised", [False, True])
def test_bits_of_devices_are_those_of_the_encoding(optimised: bool) -> None:
    mechanism = UnaryEncoding(epsilon=1.3, options=4, optimised=optimised)
    p, q = bit_probabilities(mechanism.instructions())
    assert (float(p), 1 - float(q)) == (mechanism.release.keep_one, mechanism.release.keep_zero)


@every_kind
def test_what_devices_cannot_do_is_refused_in_a_sentence(kind: type[Mechanism]) -> None:
    mechanism = built(kind)
    if kind.name in NO_DEVICE:
        with pytest.raises(ValueError, match=f"^{kind.__name__}: expected "):
            mechanism.instructions()
    else:
        assert math.isfinite(Device(mechanism.instructions()).epsilon)


def test_a_channel_is_found_again_in_another_process() -> None:
    channel = Laplace(epsilon=1.0).channel(0.0, 2.0)
    wanted = privatise(channel, seeded_tape(4), 1, 2, NOISE, 1.5)
    code = (
        "import pickle, sys; from tacit.privacy.mechanisms import privatise;"
        "from tacit.core.tapes import NOISE, seeded_tape;"
        "channel = pickle.loads(sys.stdin.buffer.read());"
        "print(repr(float(privatise(channel, seeded_tape(4), 1, 2, NOISE, 1.5))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(channel), capture_output=True, check=True
    )
    assert float(done.stdout) == wanted
    assert privatise(open_channel(), seeded_tape(0), 0, 0, NOISE, 0.25) == 0.25


def test_noise_without_a_seed_is_fresh() -> None:
    """With a seed, two calls subtract to the secret; without one they do not."""
    laplace = Laplace(epsilon=0.1)
    np.testing.assert_allclose(laplace.run(1.0, 5, seed=0) - laplace.run(0.0, 5, seed=0), 1.0)
    assert not np.allclose(laplace.run(1.0, 5) - laplace.run(0.0, 5), 1.0)


def staircase_density(x: np.ndarray, epsilon: float, inner: float) -> np.ndarray:
    """Geng and Viswanath, eq. 14, for sensitivity 1."""
    k, fall = np.floor(np.abs(x)), math.exp(-epsilon)
    height = (1 - fall) / (2 * (inner + fall * (1 - inner)))
    return height * np.exp(-epsilon * k) * np.where(np.abs(x) - k < inner, 1.0, fall)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
def test_the_staircase_is_that_of_its_paper(epsilon: float) -> None:
    """Midpoints of a fine grid; the sample by DKW, where a scale 10% wrong is found."""
    mechanism = Staircase(epsilon=epsilon)
    inner, reach, cells = 1 / (1 + math.exp(epsilon / 2)), 3 + 40 / epsilon, 1_000_000
    step = 2 * reach / cells
    x = (np.arange(cells) + 0.5) * step - reach
    density = staircase_density(x, epsilon, inner)
    assert density.sum() * step == pytest.approx(1, abs=1e-3)
    assert (density * x**2).sum() * step == pytest.approx(mechanism.variance, rel=2e-3)
    shifted = staircase_density(x - 1.0, epsilon, inner)
    for e in (0.0, epsilon / 3, epsilon):
        exact = np.maximum(0, density - math.exp(e) * shifted).sum() * step
        assert mechanism.release.delta(e) == pytest.approx(exact, abs=1e-3)
    runs = 300 if INTERPRETED else 100_000
    y = np.sort(mechanism.run(0.0, runs, seed=3)[:, 0])
    bound = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * runs)) + 2e-3
    found, cdf = np.arange(1, runs + 1) / runs, np.cumsum(density) * step
    assert np.abs(found - np.interp(y, x, cdf)).max() < bound
    if not INTERPRETED:
        assert np.abs(found - np.interp(1.1 * y, x, cdf)).max() > bound


@pytest.mark.skipif(INTERPRETED, reason="needs many draws")
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_secure_stairs_are_exact(epsilon: float) -> None:
    """The law of the whole steps, and the delta that it has against its neighbour 1024 steps on."""
    mechanism = Staircase(epsilon=epsilon)
    channel = mechanism.channel()
    inner, n = int(channel.numbers[7]), 1024
    z = np.arange(-40 * n, 40 * n + 1)
    k, r = np.divmod(np.abs(z), n)
    weight = np.exp(-epsilon * k) * np.where(r < inner, 1.0, math.exp(-epsilon))
    law = weight / weight.sum()
    told = spread_over(channel, secure_tape(), 0.0, 60_000)
    steps = np.rint(told / channel.numbers[1]).astype(int)
    cells = np.clip(steps // 128 + 200, 0, 400)
    expected = np.bincount(np.clip(z // 128 + 200, 0, 400), weights=law, minlength=401)
    assert p_value(cells, expected) > FALSE_ALARM
    other = np.roll(expected, 2)
    assert p_value(cells, other) < FALSE_ALARM
    shifted = np.roll(law, n)
    for e in (0.0, epsilon / 2):
        exact = np.maximum(0, law - math.exp(e) * shifted)[n:].sum()
        assert mechanism.secure_release.delta(e) == pytest.approx(exact, abs=1e-6)


def test_the_least_private_of_several_is_so_at_every_delta() -> None:
    """Finding P3: the arm of largest pure epsilon is not the one that costs most."""
    first = RandomizedResponseRelease(keep_zero=1 - 0.269, keep_one=0.731)
    second = RandomizedResponseRelease(keep_zero=0.999, keep_one=0.001 * math.exp(1.0001))
    assert second.epsilon > first.epsilon
    either = least_private([first, second, first])
    for epsilon in np.linspace(0, 1.2, 25):
        assert either.delta(epsilon) == max(first.delta(epsilon), second.delta(epsilon))
    cost = composed_epsilon([(either, 100)], 1e-6)
    assert cost >= composed_epsilon([(first, 100)], 1e-6) * (1 - 1e-3)
    assert cost > 80
    mixed = [composed_epsilon([(first, n), (second, 100 - n)], 1e-6) for n in (0, 30, 100)]
    assert cost >= max(mixed) * (1 - 1e-3)
    assert least_private([first]) is first
    assert release_from_dict(either.to_dict()) == either
    assert either.group(2) == either
    assert least_private([PureRelease(level=1.0), PureRelease(level=2.0)]).epsilon == 2.0


def test_mixed_directions_cost_no_more_than_declared() -> None:
    """Two asymmetric bits that change in opposite directions, by enumeration."""
    one, zero = np.array([0.02, 0.98]), np.array([0.5, 0.5])
    release = RandomizedResponseRelease(keep_one=0.98, keep_zero=0.5)
    for epsilon in (0.1, 0.5, 1.0):
        p = np.outer(one, zero).ravel()
        q = np.outer(zero, one).ravel()
        exact = np.maximum(0, p - math.exp(epsilon) * q).sum()
        declared = composed_epsilon([(release, 2)], float(exact))
        assert declared >= epsilon - 1e-3


def test_asymmetric_responses_say_their_epsilon() -> None:
    for one, zero in itertools.product((0.3, 0.6, 0.95), (0.2, 0.9)):
        mechanism = AsymmetricResponse(keep_one=one, keep_zero=zero)
        exact = max(abs(math.log(one / (1 - zero))), abs(math.log((1 - one) / zero)))
        assert mechanism.epsilon == pytest.approx(exact)
        assert mechanism.epsilon <= exact * (1 + 1e-12)
    with pytest.raises(ValueError, match="which tells nothing"):
        AsymmetricResponse(keep_one=0.25, keep_zero=0.75)
    with pytest.raises(ValueError, match="expected keep_one in"):
        AsymmetricResponse(keep_one=1.0, keep_zero=0.75)
