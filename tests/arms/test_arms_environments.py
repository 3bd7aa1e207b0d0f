"""Environments of the arms setting: schedules, recorded files, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tacit
from oracles.arms import mean_of
from tacit.arms import (
    UCB1,
    Adversarial,
    Bernoulli,
    Beta,
    Drifting,
    Recorded,
    Riser,
    Rotating,
    Switching,
    TruncatedNormal,
)
from tacit.arms.table import reward

WORLDS = [
    Bernoulli(means=(0.2, 0.8)),
    TruncatedNormal(means=(0.2, 0.8)),
    Beta(means=(0.2, 0.8)),
    Switching(means=((0.2, 0.8), (0.9, 0.1)), breakpoints="drawn"),
    Switching(means=((0.2, 0.8), (0.9, 0.1)), rewards="beta", spread=5.0),
    Rotating(n_arms=3),
    Riser(),
    Drifting(n_arms=3),
    Drifting(n_arms=3, rewards="truncated-normal"),
    Adversarial(n_arms=3),
    Recorded(data=np.random.default_rng(0).random((200, 3))),
]
every_world = pytest.mark.parametrize("environment", WORLDS, ids=lambda w: f"{w.name}-{w.rewards}")


@every_world
def test_rewards_lie_in_the_unit_interval_and_repeat(environment):
    table, again = environment.table(4, 2, 150), environment.table(4, 2, 150)
    values = [reward(table, t, a) for t in range(150) for a in range(environment.n_arms)]
    assert all(0.0 <= value <= 1.0 for value in values)
    assert values == [reward(again, t, a) for t in range(150) for a in range(environment.n_arms)]


@every_world
def test_repetitions_differ_unless_recorded(environment):
    tables = [environment.table(4, repetition, 150) for repetition in (0, 1)]
    one, two = ([reward(t, i, 1) for i in range(150)] for t in tables)
    assert (one == two) == isinstance(environment, Recorded)


@every_world
def test_regret_is_never_negative_against_the_best_mean(environment):
    result = tacit.simulate(
        UCB1(n_arms=environment.n_arms), environment, horizon=150, repetitions=2
    )
    if not isinstance(environment, Recorded):
        assert (np.diff(result.measures["regret"], axis=1) >= -1e-12).all()
    assert result.measures["regret"].shape == result.measures["reward"].shape


def test_rewards_scatter_around_the_schedule():
    # 5 standard errors of a mean of 6,000 bits: false alarm 6e-7.
    environment = Drifting(n_arms=2, variation=1.2, knots=3)
    table = environment.table(0, 0, 6000)
    values = np.array([reward(table, t, 0) for t in range(6000)])
    means = mean_of(table, np.arange(6000), 0)
    error = np.sqrt((means * (1 - means)).sum()) / 6000
    assert abs((values - means).mean()) < 5 * error
    assert abs((values - means[::-1]).mean() - 0.05) > 5 * error


def test_a_drifting_world_spends_its_budget_exactly():
    for seed in range(5):
        table = Drifting(n_arms=4, variation=3.0, knots=20).table(seed, 0, 1000)
        moved = np.abs(np.diff(table.means, axis=0)).max(axis=1).sum()
        assert moved == pytest.approx(3.0, abs=1e-12)
        assert 0.0 <= table.means.min() <= table.means.max() <= 1.0


def test_drawn_breakpoints_differ_and_stay_inside():
    environment = Switching(means=((0.2,), (0.4,), (0.6,)), breakpoints="drawn")
    starts = {tuple(environment.table(0, r, 50).starts) for r in range(20)}
    assert len(starts) > 10
    assert all(s[0] == 0 and 0 < s[1] < s[2] < 50 for s in starts)


def test_rotating_and_riser_as_described():
    assert Rotating(n_arms=3, segments=2).table(0, 0, 10).means.tolist() == [
        [0.9, 0.5, 0.1],
        [0.1, 0.9, 0.5],
    ]
    assert Riser(segments=3).table(0, 0, 9).means.tolist() == [[0.5, 0.1], [0.5, 0.9], [0.5, 0.1]]


def test_arm_zero_of_an_adversary_is_always_better_by_the_gap():
    table = Adversarial(n_arms=3, gap=0.2).table(0, 0, 1000)
    others = table.means[:, 1:]
    assert np.allclose(table.means[:, :1] - others, 0.2)
    assert (np.diff(table.starts)[3:] > np.diff(table.starts)[2:-1]).all()


@pytest.mark.parametrize("bad", [1.5, -0.1, np.nan, np.inf])
def test_a_recorded_reward_that_is_none_is_refused_with_row_and_value(bad, tmp_path):
    data = np.full((5, 2), 0.5)
    data[3, 1] = bad
    wanted = rf"expected rewards in \[0, 1\], got {bad} in row 3, arm 1"
    with pytest.raises(ValueError, match=wanted):
        Recorded(data=data)
    np.savetxt(tmp_path / "r.csv", data, delimiter=",", header="a,b", comments="")
    with pytest.raises(ValueError, match=wanted):
        Recorded(file=tmp_path / "r.csv")


def test_files_hold_the_same_table(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = np.random.default_rng(0).random((30, 3))
    np.save(tmp_path / "r.npy", data)
    np.savetxt(tmp_path / "bare.csv", data, delimiter=",", fmt="%.17g")
    np.savetxt(tmp_path / "head.csv", data, delimiter=",", fmt="%.17g", header="a,b,c", comments="")
    pq.write_table(pa.table({f"a{i}": data[:, i] for i in range(3)}), tmp_path / "r.parquet")
    for name in ("r.npy", "bare.csv", "head.csv", "r.parquet"):
        environment = Recorded(file=tmp_path / name)
        table = environment.table(0, 0, 30)
        assert [[reward(table, t, a) for a in range(3)] for t in range(30)] == data.tolist()
        result = tacit.simulate(UCB1(n_arms=3), environment, horizon=30)
        assert result.final("reward").shape == (1,)


def test_a_missing_value_in_parquet_is_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": [0.5, None], "b": [0.1, 0.2]}), tmp_path / "r.parquet")
    with pytest.raises(ValueError, match=r"got nan in row 1, arm 0"):
        Recorded(file=tmp_path / "r.parquet")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bernoulli(means=(0.5, 1.5)), r"Bernoulli: expected means in \[0, 1\], got 1.5"),
        (lambda: Beta(means=(0.0, 0.5)), r"Beta: expected means strictly between"),
        (lambda: TruncatedNormal(means=(0.5,), spread=0), r"TruncatedNormal: expected spread > 0"),
        (lambda: Switching(means=((0.1,), (0.2,)), breakpoints=(5, 9)), r"expected breakpoints 1"),
        (lambda: Switching(means=((0.1,), (0.2,)), breakpoints=(0,)), r"expected breakpoints"),
        (lambda: Switching(means=((0.1,),), rewards="cauchy"), r"expected rewards one of"),
        (lambda: Drifting(variation=100.0), r"Drifting: expected variation in"),
        (lambda: Adversarial(gap=0.0), r"Adversarial: expected gap in \(0, 1\)"),
        (Recorded, r"Recorded: expected data or file given"),
        (lambda: Recorded(data=[0.5, 0.5]), r"expected rounds x arms"),
        (lambda: Recorded(file="nowhere.csv"), r"expected file to exist"),
        (lambda: Bernoulli(means=()), r"Bernoulli: expected means"),
        (lambda: Bernoulli(means=(np.nan, 0.5)), r"Bernoulli: expected means"),
    ],
)
def test_a_bad_world_names_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_recorded_world_ends():
    with pytest.raises(ValueError, match=r"expected horizon <= 5 recorded rounds, got 6"):
        Recorded(data=np.zeros((5, 2))).table(0, 0, 6)
