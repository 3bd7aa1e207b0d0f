"""Every release has the delta of its densities; every mechanism has its variance and its norm."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from oracles.privacy import ball_delta, delta_of_densities, tree_weights
from tacit.core.kernels import INTERPRETED
from tacit.core.tapes import NOISE, recorded_tape, secure_tape, seeded_tape
from tacit.privacy import (
    BallRelease,
    BinaryTree,
    BoundedNoise,
    BoundedNoiseRelease,
    ClampedLaplace,
    DiscreteLaplaceRelease,
    Gaussian,
    GaussianRelease,
    L2Ball,
    L2CalibratedLaplace,
    L2CalibratedLaplaceRelease,
    Laplace,
    LaplaceRelease,
    LocalSum,
    Mechanism,
    Piecewise,
    PiecewiseRelease,
    RandomizedResponse,
    Release,
    SquareRootToeplitz,
    UnaryEncoding,
    UnaryRelease,
    composed_epsilon,
)

EPSILONS = (0.0, 0.05, 0.3, 0.8, 1.5, 4.0)
RUNS = 400 if INTERPRETED else 200_000


def laplace_density(x: float, scale: float) -> float:
    return math.exp(-abs(x) / scale) / (2 * scale)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_delta_is_that_of_its_densities(epsilon: float) -> None:
    release = LaplaceRelease(sensitivity=1.2, scale=0.9)
    exact = delta_of_densities(
        lambda x: laplace_density(x, 0.9),
        lambda x: laplace_density(x - 1.2, 0.9),
        epsilon,
        sorted({-40.0, -5.0, 0.0, max(0.0, (1.2 - 0.9 * epsilon) / 2), 1.2, 40.0}),
    )
    assert release.delta(epsilon) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("shift", "bound"), [(1.0, 3.0), (1.0, 1.0), (1.0, 0.7), (3.0, 1.0)])
def test_bounded_noise_delta_is_that_of_its_densities(
    shift: float, bound: float, epsilon: float
) -> None:
    release = BoundedNoiseRelease(sensitivity=shift, scale=2.0, bound=bound)

    def density(x: float) -> float:
        return laplace_density(x, 2.0) if abs(x) <= bound else 0.0

    cut = (shift - 2.0 * epsilon) / 2
    points = sorted({-bound, shift - bound, 0.0, cut, bound, shift, shift + bound})
    exact = math.exp(-bound / 2) + delta_of_densities(
        density, lambda x: density(x - shift), epsilon, points
    )
    assert release.delta(epsilon) == pytest.approx(exact, abs=1e-8)


def test_bounded_noise_of_the_paper() -> None:
    """Its claim is pure epsilon 0.1; these are the deltas at every epsilon from there on."""
    for base, expected in ((400, 2.63e-3), (500, 2.11e-3)):
        release = BoundedNoise(epsilon=0.1, bound=10 * math.log(base)).release
        assert release.epsilon == math.inf
        assert release.delta(0.1) == pytest.approx(expected, abs=5e-6)
        assert release.delta(50.0) == pytest.approx(release.delta(0.1))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_piecewise_delta_is_that_of_its_densities(epsilon: float) -> None:
    h = math.exp(0.5)
    C = (h + 1) / (h - 1)
    high = (h * h - h) / (2 * h + 2)

    def density(x: float, value: float) -> float:
        low = (C + 1) / 2 * value - (C - 1) / 2
        return high if low <= x <= low + C - 1 else high / (h * h)

    worst = max(
        delta_of_densities(
            lambda x, a=a: density(x, a), lambda x, b=b: density(x, b), epsilon, [-C, -1.0, 1.0, C]
        )
        for a, b in ((-1.0, 1.0), (1.0, -1.0))
    )
    limit = PiecewiseRelease(level=1.0, likely=1 / (1 + math.exp(-0.5)))
    assert limit.delta(epsilon) == pytest.approx(worst, abs=1e-9)
    # 1024 cells instead of infinitely many: the window is off by half a cell at most.
    assert Piecewise(epsilon=1.0).release.delta(epsilon) == pytest.approx(worst, abs=1e-3)


@pytest.mark.parametrize("dimension", [2, 3, 7, 40])
@pytest.mark.parametrize("level", [0.5, 3.0])
def test_ball_delta_is_that_of_its_density(level: float, dimension: int) -> None:
    release = BallRelease(sensitivity=level, scale=1.0, dimension=dimension)
    for epsilon in (0.0, 0.1 * level, 0.5 * level):
        exact = ball_delta(level, dimension, epsilon)
        assert release.delta(epsilon) == pytest.approx(exact, rel=2e-3, abs=5e-7)
    assert release.delta(level) == 0.0


@pytest.mark.parametrize(("steps", "scale"), [(3, 5), (4, 2), (1000, 2000)])
def test_discrete_laplace_delta_is_a_sum(steps: int, scale: int) -> None:
    x = np.arange(-60 * scale, 60 * scale + 1)
    p = np.exp(-np.abs(x) / scale)
    q = np.exp(-np.abs(x - steps) / scale)
    release = DiscreteLaplaceRelease(steps=steps, scale=scale)
    for epsilon in (0.0, 0.1, 0.37, 0.9, 3.0):
        exact = np.maximum(0, p - math.exp(epsilon) * q).sum() / p.sum()
        assert release.delta(epsilon) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LaplaceRelease(scale=1.0, norm="l2"), "LaplaceRelease: expected norm"),
        (lambda: Laplace(epsilon=1.0, norm="l2"), "Laplace: expected norm"),
        (lambda: GaussianRelease(scale=1.0, norm="l1"), "GaussianRelease: expected norm"),
        (lambda: BallRelease(scale=1.0, dimension=2, norm="l1"), "BallRelease: expected norm"),
        (
            lambda: L2CalibratedLaplaceRelease(scale=1.0, dimension=2, norm="l1"),
            "L2CalibratedLaplaceRelease: expected norm",
        ),
        (
            lambda: BinaryTree(horizon=9, epsilon=1.0, noise="laplace", norm="l2"),
            "BinaryTree: expected norm == 'l1' for laplace noise, got 'l2'",
        ),
        (lambda: LaplaceRelease(scale=0.0), "expected scale > 0, got 0.0"),
        (lambda: LaplaceRelease(scale=math.nan), "expected scale > 0, got nan"),
        (lambda: Laplace(epsilon=0.0), "expected epsilon between 1e-9 and 30, got 0.0"),
        (lambda: Gaussian(epsilon=1.0, delta=0.0), "expected delta in"),
        (lambda: Piecewise(epsilon=1.0).run(1.5, 1), "expected value a number in"),
        (
            lambda: L2Ball(epsilon=1.0, dimension=2).run([0, 0]),
            "expected tape seeded, because no exact sampler",
        ),
        (lambda: Laplace(epsilon=1.0).run([0, 0], 1), "expected value of 1 coordinates"),
    ],
)
def test_wrong_calibrations_name_themselves(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        make()  # type: ignore[operator]


MECHANISMS: list[tuple[Mechanism, list[float]]] = [
    (Laplace(epsilon=0.5, sensitivity=2.0), [0.3]),
    (Gaussian(epsilon=1.0, delta=1e-5), [0.3]),
    (BoundedNoise(epsilon=0.5, bound=3.0), [0.3]),
    (Piecewise(epsilon=1.0), [1.0]),
    (L2Ball(epsilon=1.0, dimension=4), [0.0, 1.0, 2.0, 3.0]),
    (L2CalibratedLaplace(epsilon=1.0, dimension=3), [0.0, 0.0, 0.0]),
]


def variance_error(y: np.ndarray, variance: float) -> float:
    """Distance of the sample variance from `variance`, in its standard errors."""
    centred = (y - y.mean()) ** 2
    return abs(centred.mean() - variance) / (centred.std() / math.sqrt(y.size))


@pytest.mark.parametrize(("mechanism", "value"), MECHANISMS, ids=lambda m: type(m).__name__)
def test_variance_is_as_stated(mechanism: Mechanism, value: list[float]) -> None:
    """Fails a true statement at 5 standard errors, about 6e-7; a scale 4% wrong is found."""
    y = mechanism.run(value, RUNS, seed=11)[:, 0]
    assert variance_error(y, mechanism.variance) < 5
    if not INTERPRETED:
        assert variance_error(1.04 * y, mechanism.variance) > 5


@pytest.mark.parametrize(
    "mechanism",
    [
        RandomizedResponse(epsilon=1.0),
        UnaryEncoding(epsilon=1.0, options=3),
        UnaryEncoding(epsilon=1.0, options=3, optimised=True),
    ],
)
@pytest.mark.parametrize("seed", [5, None])
def test_bits_are_kept_as_declared(
    mechanism: RandomizedResponse | UnaryEncoding, seed: int | None
) -> None:
    """5 standard errors; the twin expects an epsilon 5% larger."""
    one = [1.0] if isinstance(mechanism, RandomizedResponse) else [1.0, 0.0, 0.0]
    runs = 200 if INTERPRETED else 60_000
    y = mechanism.run(one, runs, seed)
    release = mechanism.release
    hot = y[:, 0].mean()
    assert abs(hot - release.keep_one) < 5 * math.sqrt(0.25 / runs)
    if len(one) > 1:
        cold = 1 - y[:, 1:].mean()
        assert abs(cold - release.keep_zero) < 5 * math.sqrt(0.25 / (2 * runs))
        if not INTERPRETED:
            louder = (
                UnaryRelease.optimised(1.15)
                if mechanism.optimised
                # type: ignore[union-attr]
                else (UnaryRelease.symmetric(1.15))
            )
            assert abs(cold - louder.keep_zero) > 5 * math.sqrt(0.25 / (2 * runs))


def test_unary_encoding_costs_half_against_silence() -> None:
    release = UnaryRelease.symmetric(1.0)
    silent = UnaryRelease(keep_one=release.keep_one, keep_zero=release.keep_zero, norm="presence")
    assert release.epsilon == pytest.approx(1.0)
    assert silent.epsilon == pytest.approx(0.5)
    better = UnaryEncoding(epsilon=1.0, options=2, optimised=True).variance
    assert better / UnaryEncoding(epsilon=1.0, options=2).variance == pytest.approx(0.94, abs=0.005)


def test_scalar_variances_of_the_papers() -> None:
    assert RandomizedResponse(epsilon=0.1).variance == pytest.approx(99.9, abs=0.05)
    assert Laplace(epsilon=0.1).variance == pytest.approx(200.0)


@pytest.mark.parametrize(
    ("mechanism", "value", "cdf"),
    [
        (Laplace(epsilon=0.5), 0.0, stats.laplace(scale=2.0).cdf),
        (
            Gaussian(epsilon=1.0, delta=1e-5),
            0.0,
            stats.norm(scale=Gaussian(epsilon=1.0, delta=1e-5).scale).cdf,
        ),
        (Piecewise(epsilon=1.0), 0.4, None),
    ],
)
@pytest.mark.parametrize("seed", [3, None])
def test_noise_has_its_distribution(
    mechanism: Mechanism, value: float, cdf: object, seed: int | None
) -> None:
    """Kolmogorov distance by the DKW inequality: false alarm 1e-6; a scale 8% wrong is found."""
    runs = 100 if INTERPRETED else (RUNS if seed is not None else 60_000)
    y = np.sort(mechanism.run(value, runs, seed)[:, 0])
    bound = math.sqrt(math.log(2e6) / (2 * runs))
    grid = np.arange(1, runs + 1) / runs
    expected = cdf(y) if cdf is not None else piecewise_cdf(y, value, 1.0)  # type: ignore[operator]
    assert np.abs(grid - expected).max() < bound + 1 / runs
    if not INTERPRETED and cdf is not None:
        assert np.abs(grid - cdf(1.08 * y)).max() > bound  # type: ignore[operator]


def piecewise_cdf(y: np.ndarray, value: float, epsilon: float) -> np.ndarray:
    h = math.exp(epsilon / 2)
    C = (h + 1) / (h - 1)
    high = (h * h - h) / (2 * h + 2)
    low = (C + 1) / 2 * value - (C - 1) / 2
    inside = np.clip(y - low, 0, C - 1)
    return high * inside + high / (h * h) * (y + C - inside)


def test_clamped_noise_is_clamped_noise() -> None:
    y = ClampedLaplace(epsilon=0.5, low=-1.0, high=2.0).run(0.3, 1000, seed=4)
    raw = Laplace(epsilon=0.5).run(0.3, 1000, seed=4)
    np.testing.assert_array_equal(y, np.clip(raw, -1.0, 2.0))


@settings(max_examples=60, deadline=None)
@given(
    epsilon=st.floats(1e-9, 30),
    sensitivity=st.floats(1e-6, 1e6),
    dimension=st.integers(1, 3000),
)
def test_secure_laplace_never_costs_more(
    epsilon: float, sensitivity: float, dimension: int
) -> None:
    mechanism = Laplace(epsilon=epsilon, sensitivity=sensitivity, dimension=dimension)
    assume(mechanism.secure)
    release = mechanism.secure_release
    assert Fraction(release.steps, release.scale) <= Fraction(epsilon)
    assert release.steps / release.scale > 0.99 * epsilon


@pytest.mark.parametrize("sensitivity", [1.0, 0.3, 7e3])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.1, 1e-6), (8.0, 1e-9)])
def test_secure_gaussian_never_costs_more(epsilon: float, delta: float, sensitivity: float) -> None:
    mechanism = Gaussian(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    assert mechanism.secure_release.delta(epsilon) <= delta * (1 + 1e-9)
    assert composed_epsilon([(mechanism.secure_release, 1)], delta) > 0.98 * epsilon


def test_secure_values_lie_on_their_grid() -> None:
    """The low bits of a value must not survive; the floating-point twin keeps them."""
    from tacit.privacy.mechanisms.laplace import laplace_steps

    grid = laplace_steps(1.0, 0.5, 1)[0]
    for value in (0.1, math.pi / 4):
        y = Laplace(epsilon=0.5).run(value, 50, None)
        np.testing.assert_array_equal(y, grid * np.rint(y / grid))
    y = Laplace(epsilon=0.5).run(0.1, 50, 1)
    assert np.any(y != grid * np.rint(y / grid))


@pytest.mark.parametrize(
    "mechanism",
    [
        L2Ball(epsilon=1.0, dimension=2),
        L2CalibratedLaplace(epsilon=1.0, dimension=2),
    ],
)
def test_what_has_no_exact_sampler_does_not_run_securely(mechanism: Mechanism) -> None:
    assert not mechanism.secure
    with pytest.raises(ValueError, match=r"expected tape seeded, because .*, got 'secure'"):
        mechanism.run([0.0, 0.0])
    with pytest.raises(ValueError, match=type(mechanism).__name__):
        _ = mechanism.secure_release
    assert np.isfinite(mechanism.run([0.0, 0.0], 1, 0)).all()


def test_a_correlated_path_is_not_drawn_securely() -> None:
    noise = SquareRootToeplitz(horizon=4, epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match="SquareRootToeplitz: expected tape seeded"):
        noise.path(secure_tape())


TREES = [
    {"noise": "laplace", "norm": "l1"},
    {"noise": "gaussian", "norm": "l2", "delta": 1e-6},
    {"noise": "ball", "norm": "l2", "dimension": 3},
]


@pytest.mark.parametrize("online", [True, False])
@pytest.mark.parametrize("items", [1, 2, 7, 8, 13, 100])
def test_tree_variance_is_that_of_its_nodes(items: int, online: bool) -> None:
    tree = BinaryTree(horizon=128, epsilon=1.0, online=online)
    weights = tree_weights(items, online)
    exact = tree.node.variance * sum(w * w for w in weights.values())
    assert tree.variance_after(items) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("online", [True, False])
def test_tree_kernel_combines_its_nodes(online: bool) -> None:
    """With one node's noise switched on at a time, the kernel must show that node's weight."""
    T = 13
    tree = BinaryTree(horizon=T, epsilon=1.0, online=online)
    one = 1 - math.exp(-1.0) / 2
    for end in range(T):
        for height in range(tree.levels):
            closed = (end + 1) & -(end + 1) == 1 << height
            if not online and not closed:
                continue  # one node a step, at index 0
            draws = np.full((T, tree.levels), 0.5)
            draws[end, height if online else 0] = one
            noise = run_tree(tree, recorded_tape({NOISE: draws}))[:, 0]
            for t in range(T):
                weight = tree_weights(t + 1, online).get((height, end + 1), 0.0)
                assert noise[t] == pytest.approx(weight * tree.scale, abs=1e-12)


def run_tree(tree: BinaryTree, tape: object) -> np.ndarray:
    out = np.zeros((1, tree.horizon * tree.dimension))
    tree._fill(tape, np.zeros(out.size), out)  # type: ignore[arg-type]
    return out.reshape(tree.horizon, tree.dimension)


@pytest.mark.parametrize("settings_of", TREES, ids=lambda s: str(s["noise"]))
def test_tree_noise_has_its_variance(settings_of: dict[str, object]) -> None:
    """5 standard errors; half the nodes' variance is found."""
    tree = BinaryTree(horizon=7, epsilon=1.0, **settings_of)  # type: ignore[arg-type]
    runs = 100 if INTERPRETED else 6000
    last = np.array([run_tree(tree, seeded_tape(2, r))[-1, 0] for r in range(runs)])
    assert variance_error(last, tree.variance_after(7)) < 5
    if not INTERPRETED:
        assert variance_error(last, 0.7 * tree.variance_after(7)) > 5


def test_toeplitz_kernel_path_and_formula_agree() -> None:
    toeplitz = SquareRootToeplitz(horizon=40, epsilon=1.0, delta=1e-6, dimension=2)
    path = toeplitz.path(seeded_tape(3))
    out = toeplitz.run(np.zeros((40, 2)), seed=3).reshape(40, 2)
    np.testing.assert_allclose(path, out, rtol=1e-9, atol=1e-9)
    root = np.array(
        [[toeplitz.coefficients[i - k] if i >= k else 0.0 for k in range(40)] for i in range(40)]
    )
    np.testing.assert_allclose(root @ root, np.tril(np.ones((40, 40))), atol=1e-12)
    assert toeplitz.variance_after(17) == pytest.approx(toeplitz.scale**2 * (root[16] ** 2).sum())
    largest = np.linalg.norm(root, axis=0).max()
    assert toeplitz.factored_sensitivity == pytest.approx(largest)


@pytest.mark.parametrize("summed", [1, 16, 500])
def test_the_bounds_of_a_long_toeplitz_are_above_its_sums_and_near(
    monkeypatch: pytest.MonkeyPatch, summed: int
) -> None:
    exact, bounded = (SquareRootToeplitz(horizon=3000, epsilon=1.0, delta=1e-6) for _ in range(2))
    values = (exact.factored_sensitivity, exact._sum, exact._moved[0], exact.variance_after(2000))
    monkeypatch.setattr("tacit.privacy.mechanisms.toeplitz._SUMMED", summed)
    bounds = (
        bounded.factored_sensitivity,
        bounded._sum,
        bounded._moved[0],
        bounded.variance_after(2000),
    )
    for bound, value in zip(bounds, values, strict=True):
        assert value <= bound * (1 + 1e-12)
        assert bound == pytest.approx(value, rel=1 / (40 * summed**2) + 1e-4)


def test_a_toeplitz_tells_its_guarantee_for_any_horizon() -> None:
    long = SquareRootToeplitz(horizon=10**15, epsilon=1.0, delta=1e-6)
    assert long.factored_sensitivity**2 == pytest.approx(1.0664 + math.log(10**15) / math.pi, 1e-4)
    assert composed_epsilon(long.releases, 1e-6) == pytest.approx(1.0, rel=1e-6)
    assert "2^52" in long.insecure_because


@pytest.mark.parametrize(
    ("how", "factor", "worst", "mean"),
    [
        ({"noise": "l2_laplace", "norm": "l2", "dimension": 2500}, 1.0, 35.7, 24.9),
        ({"noise": "laplace", "norm": "l1", "sensitivity": 50.0}, 1.0, 1785, 1246),
        ({"noise": "ball", "norm": "l2", "dimension": 2500}, 1.0, 1262, 881),
        ({"noise": "gaussian", "norm": "l2", "delta": 1e-6}, 1.0, 30.1, 21.0),
        ("toeplitz", 1.0, 8.92, 8.55),
        ("laplace", 1 / 50, 1.41, 0.94),
        ("response", 1 / 50, 0.85, 0.57),
    ],
)
def test_errors_at_dimension_2500(how: object, factor: float, worst: float, mean: float) -> None:
    """Per coordinate, in units of an item's L2 length, for T = 10^4 items and epsilon 2."""
    T = 10_000
    local: dict[str, SquareRootToeplitz | LocalSum] = {
        "toeplitz": SquareRootToeplitz(horizon=T, epsilon=2.0, delta=1e-6),
        "laplace": LocalSum(mechanism=Laplace(epsilon=2.0)),
        "response": LocalSum(mechanism=RandomizedResponse(epsilon=2.0)),
    }
    if isinstance(how, str):
        items = np.arange(1, T + 1, 9)  # ends at T, the worst
        errors = [math.sqrt(local[how].variance_after(int(n))) for n in items]
    else:
        tree = BinaryTree(horizon=T, epsilon=2.0, online=False, **how)  # type: ignore[arg-type]
        errors = [math.sqrt(n.bit_count() * tree.node.variance) for n in range(1, T + 1)]
        assert tree.variance_after(8191) == pytest.approx(max(errors) ** 2)
    assert factor * max(errors) == pytest.approx(worst, rel=6e-3)
    assert factor * float(np.mean(errors)) == pytest.approx(mean, rel=6e-3)


def test_tree_releases_meet_their_epsilon() -> None:
    for how in TREES:
        tree = BinaryTree(horizon=100, epsilon=1.5, **how)  # type: ignore[arg-type]
        assert composed_epsilon(tree.releases, tree.delta) == pytest.approx(1.5, rel=2e-3)
    published = BinaryTree(horizon=100, epsilon=1.5, noise="l2_laplace", norm="l2", dimension=100)
    assert composed_epsilon(published.releases) == pytest.approx(15.0)


def test_every_release_is_described_and_read_back() -> None:
    from tacit.privacy.releases import release_from_dict

    for mechanism, _ in MECHANISMS:
        release: Release = mechanism.release
        assert release_from_dict(release.to_dict()) == release
        assert release.mechanism in release.describe()
