"""Study files: what they may say, and how they complain."""

import pytest

from tacit.simulation import Study

GOOD = """
name = "demo"
horizon = 200
repetitions = 3

[environment]
name = "rotating"

[[policy]]
name = "ucb1"

[[policy]]
name = "klucb-cf"
label = "private"

[grid]
"policy.epsilon" = [0.5, 2.0]
"environment.segments" = [2, 4]
"""


def written(tmp_path, text):
    file = tmp_path / "study.toml"
    file.write_text(text)
    return file


def test_grid_varies_only_what_has_the_parameter(tmp_path):
    cells = Study.from_toml(written(tmp_path, GOOD)).cells()
    labels = [cell.label for cell in cells]
    assert labels.count("ucb1 segments=2") == 1
    assert len(cells) == 2 + 4
    private = [cell for cell in cells if cell.label.startswith("private")]
    assert {(c.policy.epsilon, c.environment.segments) for c in private} == {
        (0.5, 2),
        (0.5, 4),
        (2.0, 2),
        (2.0, 4),
    }


def test_horizon_may_be_varied_and_fills_policies(tmp_path):
    text = GOOD.replace('name = "ucb1"', 'name = "sw-ucb"').replace(
        '"environment.segments" = [2, 4]', "horizon = [100, 1000]"
    )
    windows = {
        cell.policy.window_rounds
        for cell in Study.from_toml(written(tmp_path, text)).cells()
        if cell.policy.name == "sw-ucb"
    }
    assert len(windows) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("ucb1", "ucb2"), "did you mean ucb1"),
        (("rotating", "rotated"), "did you mean rotating"),
        (("policy.epsilon", "policy.epsilom"), "touches nothing"),
        (("[0.5, 2.0]", "[-1.0]"), "expected epsilon between 1e-9 and 30, got -1.0"),
        (
            ("horizon = 200", "horizon = 0"),
            "expected horizon a whole number from 1 to 1,000,000,000,000,000, got 0",
        ),
        (('label = "private"', "sigma = 3"), "has no parameter 'sigma'"),
        (("repetitions", "repetition"), "no key 'repetition'"),
        (("[2, 4]", "[]"), "a list of values"),
        (("[grid]", "[grid"), "not a TOML file"),
    ],
)
def test_mistakes_are_named(tmp_path, change, words):
    with pytest.raises(ValueError, match=words.replace("[", r"\[")):
        Study.from_toml(written(tmp_path, GOOD.replace(*change))).cells()


def test_fingerprint_changes_with_anything_that_matters(tmp_path):
    one = Study.from_toml(written(tmp_path, GOOD))
    same = Study.from_toml(written(tmp_path, GOOD + "\n# a comment\n"))
    other = Study.from_toml(written(tmp_path, GOOD.replace("[2, 4]", "[2, 5]")))
    assert one.fingerprint == same.fingerprint
    assert one.fingerprint != other.fingerprint


def test_a_policy_named_twice_is_told_apart_by_its_parameters():
    study = Study(
        name="two",
        environment={"name": "bernoulli", "means": [0.3, 0.7]},
        policies=({"name": "ucb1"}, {"name": "ucb1", "exploration": 1.0}),
    )
    assert [cell.label for cell in study.cells()] == ["ucb1", "ucb1 exploration=1.0"]


def test_the_fingerprint_follows_the_files_a_study_names(tmp_path):
    file = tmp_path / "rewards.csv"

    def fingerprint():
        environment = {"name": "recorded", "file": str(file)}
        return Study(name="a", environment=environment, policies=({"name": "ucb1"},)).fingerprint

    file.write_text("0,1\n1,0\n")
    first = fingerprint()
    assert fingerprint() == first
    file.write_text("0,1\n1,1\n")
    assert fingerprint() != first


def test_a_world_inside_a_world_can_be_written():
    inner = {"name": "bernoulli", "means": [0.3, 0.5, 0.7]}
    graph = {"name": "path", "n_nodes": 3}
    study = Study(
        name="nested",
        environment={"name": "graph-feedback", "environment": inner, "graph": graph},
        policies=({"name": "ucb-n"},),
    )
    assert study.cells()[0].policy.n_arms == 3


def test_a_part_of_a_parameter_may_be_varied():
    study = Study(
        name="parts",
        environment={"name": "graph-feedback", "environment": {"name": "riser"}, "edge_prob": 0.5},
        policies=({"name": "ucb1"},),
        grid={"environment.environment.segments": [2, 4], "environment.environment.n_arms": [2, 3]},
    )
    built = [cell.environment.environment for cell in study.cells()]
    assert [(each.segments, each.n_arms) for each in built] == [(2, 2), (2, 3), (4, 2), (4, 3)]
    assert study.environment["environment"] == {"name": "riser"}


def test_privacy_of_a_policy_of_users_may_be_varied():
    study = Study(
        name="privacy",
        environment={"name": "synthetic-users", "n_users": 3, "dimension": 2},
        policies=({"name": "colin", "privacy": "per-reward"}, {"name": "linucb"}),
        grid={"colin.privacy.epsilon": [1, 2.5]},
    )
    cells = study.cells()
    assert [getattr(cell.policy.privacy, "epsilon", None) for cell in cells] == [1.0, None, 2.5]
    assert cells[2].label == "colin epsilon=2.5"
