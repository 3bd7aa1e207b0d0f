"""Comparing in Python: own things beside built-in ones, and results that other tools take."""

from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tacit
from simulation import own_things
from tacit.arms import UCB1, Bernoulli, RewardFunction, from_river
from tacit.cli import app
from tacit.core import registry
from tacit.core.kernels import INTERPRETED
from tacit.core.policy import Policy
from tacit.core.registry import build_environment, build_policy
from tacit.simulation import Study, run_study

TIDE = RewardFunction(function=own_things.tide, n_arms=2)
TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def found():
    policies = {
        "plain": own_things.Greedy,
        "cautious": UCB1(n_arms=2),
        "private": "klucb-cf:epsilon=2",
    }
    return tacit.compare(policies, TIDE, horizon=300, repetitions=3)


def test_policies_meet_the_same_tables(found):
    assert list(found) == ["plain", "cautious", "private"]
    again = tacit.simulate(UCB1(n_arms=2), TIDE, horizon=300, repetitions=3)
    assert np.array_equal(found["cautious"].measures["regret"], again.measures["regret"])


def test_a_plain_policy_is_as_repeatable_as_any():
    runs = [
        tacit.compare([own_things.Greedy], TIDE, horizon=200, repetitions=4, threads=n, seed=3)
        for n in (1, 4)
    ]
    values = [run["Greedy"].measures["regret"] for run in runs]
    assert values[0].tobytes() == values[1].tobytes()
    other = tacit.compare([own_things.Greedy], TIDE, horizon=200, repetitions=4, seed=4)
    assert values[0].tobytes() != other["Greedy"].measures["regret"].tobytes()
    assert len({tuple(row) for row in values[0]}) > 1


def test_a_plain_policy_learns_and_takes_parameters():
    places = {
        "shy": {"name": "simulation.own_things:Greedy", "explore": 1},
        "bold": own_things.Greedy,
    }
    environment = Bernoulli(means=(0.1, 0.9))
    result = tacit.compare(places, environment, horizon=1000, repetitions=4)
    assert result["bold"].final("regret").mean() < 0.5 * result["shy"].final("regret").mean()


def test_a_plain_policy_has_the_example_that_the_command_line_gives_it():
    found = tacit.compare([own_things.Greedy], horizon=20, repetitions=1)
    named = "simulation.own_things:Greedy"
    assert found["Greedy"].environment == registry.build_environment(None, named)
    with pytest.raises(ValueError, match="expected an environment, got none"):
        registry.build_environment(None, Homeless)


class Homeless(Policy):
    """A policy that says nowhere where it can be tried."""


def test_labels_tell_policies_apart():
    result = tacit.compare(
        ["ucb1", "ucb1:exploration=1", UCB1(n_arms=2, exploration=1.5), UCB1],
        "bernoulli:means=[0.3,0.7]",
        horizon=10,
        repetitions=1,
    )
    assert list(result) == [
        "ucb1",
        "ucb1 exploration=1",
        "UCB1(n_arms=2, exploration=1.5)",
        "UCB1(n_arms=2, exploration=2.0)",
    ]


def test_a_frame_has_a_row_for_each_checkpoint(found):
    table = found.frame("arrow")
    assert table.column_names == [
        "cell",
        "label",
        "policy",
        "horizon",
        "repetition",
        "round",
        "regret",
        "reward",
    ]
    assert table.num_rows == 3 * 3 * 100
    last = found["private"].final("regret")
    rows = table.to_pylist()
    told = [r["regret"] for r in rows if r["label"] == "private" and r["round"] == 300]
    assert told == last.tolist()
    assert rows[0]["policy"] == "Greedy"


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_frame_of_another_library(found, kind):
    if importlib.util.find_spec(kind) is None:
        with pytest.raises(ValueError, match=f"{kind} is not installed; pip install {kind}"):
            found.frame(kind)
        return
    frame = found.frame(kind)
    assert frame.shape == (900, 8)
    assert type(found.frame()).__module__.startswith(("pandas", "polars"))


def test_tables_for_texts_and_notebooks(found):
    markdown = found.table()
    assert markdown.splitlines()[0] == "| policy | regret | 95% interval | privacy |"
    assert len(markdown.splitlines()) == 5
    latex = tacit.compare({"a_b & 50%": UCB1}, TIDE, horizon=10, repetitions=2).table("latex")
    assert r"a\_b \& 50\%" in latex
    assert latex.startswith(r"\begin{tabular}{lrll}")
    shown = tacit.compare({"<b>": UCB1}, TIDE, horizon=10, repetitions=2)._repr_html_()
    assert "&lt;b&gt;" in shown
    assert shown.count("<tr>") == 2
    with pytest.raises(ValueError, match="expected format one of markdown, latex, got 'word'"):
        found.table("word")
    with pytest.raises(ValueError, match="no measure is called 'loss'; there are regret, reward"):
        found.table(measure="loss")


def test_every_result_has_a_picture(found, tmp_path):
    study = Study(name="s", environment={"name": "riser"}, policies=({"name": "ucb1"},), horizon=50)
    done = run_study(study, tmp_path, workers=1)
    for result in (found, found["plain"], done):
        figure = result.plot("reward")
        assert figure.axes[0].get_ylabel() == "cumulative reward"
        assert len(figure.axes[0].lines) == len(result.shown)
    with pytest.raises(ValueError, match="no measure is called 'loss'"):
        found.plot("loss")


def test_a_picture_hides_no_negative_regret_and_names_the_function():
    found = tacit.compare(["klucb"], TIDE, horizon=1000, repetitions=2)
    axes = found.plot().axes[0]
    lowest = min(axes.lines[0].get_ydata())
    assert lowest < 0  # kl-UCB follows the tide, which no fixed arm does
    assert axes.get_ylim()[0] <= lowest
    assert axes.get_title(loc="left") == "RewardFunction(function=tide, n_arms=2)"


def test_values_of_the_grid_are_columns(tmp_path):
    study = Study(
        name="grid",
        environment={"name": "riser"},
        policies=({"name": "ucb1"}, {"name": "sw-klucb-cf"}),
        horizon=50,
        repetitions=2,
        grid={"policy.epsilon": [1, 2.5], "sw-klucb-cf.window": ["log", 20], "horizon": [40, 50]},
    )
    done = run_study(study, tmp_path, workers=1)
    import pyarrow.parquet as pq

    table = pq.read_table(done.path)
    assert set(table["policy.epsilon"].to_pylist()) == {1.0, 2.5, None}
    assert set(table["sw-klucb-cf.window"].to_pylist()) == {"log", "20", None}
    assert "horizon" in table.column_names
    assert list(done.cells[0].measures) == ["regret", "reward"]
    assert done.frame("arrow").column_names == table.column_names


@pytest.mark.parametrize(
    ("policies", "environment", "complaint"),
    [
        ([], TIDE, "expected policies at least one"),
        ([3], TIDE, "expected a policy, its class or its name, got 3"),
        (["ucb1"], 3, "expected an environment or its name, got 3"),
        (["ucb1"], own_things.tide, "becomes one with tacit.arms.RewardFunction"),
        ([UCB1(n_arms=3)], TIDE, "expected n_arms to be 2 as in reward-function, got 3"),
        ([own_things.Outside], TIDE, r"expected select to return an arm in 0\.\.1, got 5"),
        (["simulation.own_things:Greedy:explore=wide"], TIDE, "explore to be a number"),
        (["simulation.own_things:tide:n_arms=2"], TIDE, "expected a policy class"),
        (["colin"], TIDE, "plays in the setting 'contextual'|colin needs"),
    ],
)
def test_mistakes_are_named(policies, environment, complaint):
    with pytest.raises(ValueError, match=complaint):
        tacit.compare(policies, environment, horizon=10, repetitions=1)


def test_a_reward_function_is_checked():
    place = RewardFunction(function=own_things.beyond, n_arms=2)
    with pytest.raises(
        ValueError, match=r"beyond: expected rewards in \[0, 1\], got 1.5 in round 0"
    ):
        tacit.compare(["ucb1"], place, horizon=10, repetitions=1)
    with pytest.raises(ValueError, match="expected horizon <= 100,000,000 for 2 arms"):
        TIDE.table(0, 0, 10**9)


def test_plain_things_travel_to_other_processes():
    policy = build_policy("simulation.own_things:Greedy:explore=0.5", {"n_arms": 2})
    assert pickle.loads(pickle.dumps(policy)) == policy
    place = build_environment("simulation.own_things:tide:n_arms=2")
    back = pickle.loads(pickle.dumps(place))
    assert np.array_equal(back.table(1, 2, 30).recorded, place.table(1, 2, 30).recorded)


@pytest.mark.skipif(INTERPRETED, reason="seconds when compiled")
def test_the_command_line_runs_plain_things_in_processes(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    words = ["compare", "simulation.own_things:Greedy", "ucb1", "--environment"]
    words += ["simulation.own_things:tide:n_arms=2", "--horizon", "100", "--repetitions", "9"]
    done = CliRunner().invoke(app, [*words, "--engine", "processes", "--workers", "2"])
    assert done.exit_code == 0, done.output
    assert "Greedy" in done.output


class OneArm:
    """What river's policies offer."""

    def __init__(self, arm=0, seed=None):
        self.arm, self.seed = arm, seed

    def clone(self, changes):
        return OneArm(self.arm, **changes)

    def pull(self, arms):
        assert self.seed is not None
        return arms[self.arm]

    def update(self, arm, reward):
        assert arm == self.arm


def test_a_policy_of_river_plays_here():
    result = tacit.compare([from_river(OneArm(1))], TIDE, horizon=20, repetitions=2)
    assert list(result) == ["river-OneArm"]
    assert result["river-OneArm"].measures["regret"].shape == (2, 20)


def test_a_policy_of_the_real_river_learns():
    bandit = pytest.importorskip("river.bandit", reason="river is not installed")
    policy = from_river(bandit.EpsilonGreedy(epsilon=0.1))
    result = tacit.compare([policy, "uniform"], Bernoulli(means=(0.1, 0.9)), horizon=500)
    regrets = [result[label].final("regret").mean() for label in result]
    assert regrets[0] < 0.5 * regrets[1]


def test_progress_is_told():
    told = []
    tacit.compare(
        ["ucb1"],
        TIDE,
        horizon=50,
        repetitions=4,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told[-1] == (200, 200)
