"""Logs: what is read, what is refused, and what a policy learns from one."""

from __future__ import annotations

import gzip
import json
import os

import numpy as np
import pytest

from commands import tacit
from tacit.arms import GAP, UCB1, Uniform
from tacit.core.kernels import INTERPRETED
from tacit.simulation.evaluation import Log, evaluate, open_bandit, read_log, replay

CSV = "arm,reward,propensity\n0,1,0.5\n1,0,0.5\n"


def uniform_log(n, means, seed=0):
    rng = np.random.default_rng(seed)
    arms = rng.integers(0, len(means), n)
    rewards = rng.random(n) < np.asarray(means)[arms]
    return Log(arms=arms, rewards=rewards, propensities=np.full(n, 1 / len(means)))


def test_the_same_log_from_every_kind_of_file(tmp_path):
    import pyarrow.csv
    import pyarrow.parquet

    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "bom.csv").write_text(CSV, encoding="utf-8-sig")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(tmp_path / "a.csv"), tmp_path / "a.parquet")
    for name in ("a.csv", "bom.csv", "a.csv.gz", "a.parquet"):
        log = read_log(tmp_path / name)
        assert log.arms.tolist() == [0, 1]
        assert log.rewards.tolist() == [1.0, 0.0]
        assert log.propensities.tolist() == [0.5, 0.5]


def test_columns_have_other_names(tmp_path):
    (tmp_path / "b.csv").write_text("click,item,x\n1,0,a\n0,3,b\n")
    log = read_log(tmp_path / "b.csv", columns={"arm": "item", "reward": "click", "propensity": ""})
    assert log.n_arms == 4
    assert log.uniform


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("arm,reward\n0,1\n", "expected the columns arm, reward, propensity"),
        (CSV + "0,1\n", "b.csv"),
        (CSV + "x,1,0.5\n", "arm"),
        (CSV + "0,2,0.5\n", r"expected reward of row 2 in \[0, 1\], got 2"),
        (CSV + "0,1,0\n", r"expected propensity of row 2 in \(0, 1\], got 0"),
        (CSV + "-1,1,0.5\n", "expected arm of row 2 in 0..1, got -1"),
        (CSV + "0.5,1,0.5\n", "expected arms whole numbers"),
        (CSV + "0,,0.5\n", "reward is missing in 1 rows"),
        ("arm,reward,propensity\n", "expected arms"),
        ("", "b.csv"),
    ],
)
def test_a_bad_log_is_named(tmp_path, text, complaint):
    (tmp_path / "b.csv").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        read_log(tmp_path / "b.csv")


def test_a_file_that_is_no_log_is_named(tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        read_log(tmp_path / "absent.csv")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match=r"broken\.parquet"):
        read_log(tmp_path / "broken.parquet")


def test_replay_uses_each_decision_once_and_in_order():
    log = uniform_log(3_000, (0.1, 0.5, 0.9))
    found = replay(log, UCB1(n_arms=3))
    assert (np.diff(found.rows) > 0).all()
    assert (log.arms[found.rows] == found.arms).all()
    assert (log.rewards[found.rows] == found.rewards).all()
    assert found.value > 0.75


def test_replay_of_a_policy_that_learns_nothing_is_unbiased():
    """5 standard errors over 300 logs; the best arm alone must be told apart."""
    values = [
        replay(uniform_log(200, (0.2, 0.6), seed), Uniform(n_arms=2), seed=seed).value
        for seed in range(300)
    ]
    error = np.std(values) / np.sqrt(300)
    assert abs(np.mean(values) - 0.4) <= 5 * error
    assert abs(np.mean(values) - 0.6) > 5 * error


def test_unequal_chances_are_undone():
    """The mean of a uniform choice from a log that shows the good arm nine times in ten."""
    rng = np.random.default_rng(3)
    chances = np.array([0.9, 0.1])
    arms = rng.choice(2, 20_000, p=chances)
    rewards = rng.random(20_000) < np.array([0.8, 0.2])[arms]
    log = Log(arms=arms, rewards=rewards, propensities=chances[arms])
    found = replay(log, Uniform(n_arms=2))
    error = np.sqrt(0.25 / len(found.rewards))
    assert len(found.rewards) > 1_800
    assert abs(found.value - 0.5) <= 5 * error
    assert abs(log.rewards.mean() - 0.5) > 5 * error


def test_replay_refuses_what_does_not_fit():
    log = uniform_log(20, (0.5, 0.5))
    with pytest.raises(ValueError, match="expected n_arms 2 as in the log, got 3"):
        replay(log, UCB1(n_arms=3))


def test_a_policy_is_not_played_past_its_horizon():
    log = uniform_log(500, (0.5, 0.5))
    assert len(replay(log, GAP(n_arms=2, epsilon=1.0, horizon=30)).rows) <= 30


def test_the_four_estimates_find_the_good_arm():
    found = evaluate(uniform_log(8_000, (0.2, 0.8)), UCB1(n_arms=2))
    assert [e.method for e in found.estimates] == ["replay", "ips", "snips", "dr"]
    assert found.shares[1] > 0.9
    for each in found.estimates:
        assert each.low < each.value < each.high
        assert abs(each.value - found.shares @ [0.2, 0.8]) < 0.1


def test_no_success_is_no_certainty():
    found = evaluate(uniform_log(400, (0.0, 0.0)), UCB1(n_arms=2))
    assert {e.method: e.value for e in found.estimates} == dict.fromkeys(
        ("replay", "ips", "snips", "dr"), 0.0
    )
    replayed, *others = found.estimates
    assert replayed.high == pytest.approx(1 - 0.025 ** (1 / replayed.n))
    assert all((e.low, e.high) == (0.0, 1.0) for e in others)


def test_too_short_a_log_says_so():
    log = Log(arms=[1] * 8, rewards=[1] * 8, propensities=[0.5] * 8, n_arms=2)
    with pytest.raises(ValueError, match="no decision that ucb1 would have made"):
        evaluate(log, UCB1(n_arms=2))


@pytest.fixture
def data():
    folder = os.environ.get("TACIT_DATA", "")
    if not os.path.isdir(os.path.join(folder, "open-bandit-small")):
        pytest.skip("open-bandit-small is not here; TACIT_DATA names its folder")
    return folder


@pytest.mark.parametrize(("campaign", "arms"), [("all", 80), ("men", 34), ("women", 46)])
@pytest.mark.parametrize("behaviour", ["random", "bts"])
def test_open_bandit_is_what_its_paper_says(data, campaign, arms, behaviour):
    log = open_bandit(campaign, behaviour)
    assert (len(log), log.n_arms) == (10_000, arms)
    assert 38 <= log.rewards.sum() <= 70
    assert log.uniform == (behaviour == "random")


def test_an_absent_data_set_says_where_it_comes_from(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"comes from https://.*TACIT_DATA"):
        open_bandit("men", directory=tmp_path)


def test_another_content_is_refused(tmp_path):
    folder = tmp_path / "open-bandit-small" / "random" / "men"
    folder.mkdir(parents=True)
    (folder / "men.csv").write_text("item_id,click,propensity_score\n0,0,0.5\n")
    with pytest.raises(ValueError, match="expected the content with sha256 ede6d08c"):
        open_bandit("men", directory=tmp_path)


@pytest.mark.skipif(INTERPRETED, reason="seconds when compiled")
def test_the_command_prints_every_estimate(tmp_path):
    log = uniform_log(2_000, (0.2, 0.8))
    lines = [f"{a},{r:g}" for a, r in zip(log.arms, log.rewards, strict=True)]
    (tmp_path / "log.csv").write_text("item,click\n" + "\n".join(lines))
    words = [
        "evaluate",
        "log.csv",
        "ucb1",
        "klucb-cf:epsilon=2",
        "--arm",
        "item",
        "--reward",
        "click",
    ]
    done = tacit(*words, "--propensity", "", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [(row["policy"], row["estimate"]) for row in rows] == [
        (policy, method)
        for policy in ("ucb1", "klucb-cf:epsilon=2")
        for method in ("replay", "ips", "snips", "dr")
    ]
    assert all(0.6 < row["reward"] < 1.0 for row in rows)
