"""Own policies and environments register as the built-in ones do."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

import tacit
from tacit.arms import UCB1, Bernoulli
from tacit.core import registry

MODULE = """
from tacit.arms import Bernoulli, UCB1

class Mine(UCB1):
    name = "mine"
    summary = "as UCB1"

class Place(Bernoulli):
    name = "place"

def broken():
    pass
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "things_of_mine.py").write_text(MODULE)
    (tmp_path / "faulty_things.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    yield "things_of_mine"
    sys.path[:] = before
    sys.modules.pop("things_of_mine", None)


@pytest.fixture
def clean():
    before = {what: dict(kinds) for what, kinds in registry._registered.items()}
    yield
    for what, kinds in before.items():
        registry._registered[what].clear()
        registry._registered[what].update(kinds)


def test_settings_are_entry_points():
    assert {point.name for point in entry_points(group="tacit.settings")} >= {"arms", "contextual"}


def test_a_registered_class_is_known_by_name(clean):
    @tacit.register
    class Bold(UCB1):
        name = "bold"

    assert registry.policies()["bold"] is Bold
    assert registry.build(registry.policy_named("bold"), {"n_arms": 2}, {}).n_arms == 2

    @tacit.register
    class Place(Bernoulli):
        name = "bold"

    assert registry.environments()["bold"] is Place


def test_a_taken_name_is_refused(clean):
    with pytest.raises(ValueError, match="'klucb' is the name of KLUCB already"):

        @tacit.register
        class Thief(UCB1):
            name = "klucb"

    with pytest.raises(ValueError, match="expected a Policy or Environment class with a name"):
        tacit.register(int)


def test_a_class_is_found_by_module_and_name(module):
    policy, environment = registry.build_pair(
        {"name": "things_of_mine:Mine", "exploration": 1},
        {"name": "things_of_mine:Place", "means": [0.1, 0.9]},
        horizon=10,
    )
    assert type(policy).__name__ == "Mine"
    assert policy.exploration == 1.0
    assert environment.n_arms == policy.n_arms == 2


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("absent_things:Mine", "cannot import absent_things"),
        ("faulty_things:Mine", "fails when imported (ZeroDivisionError: division by zero)"),
        ("things_of_mine:Nobody", "expected a policy class in things_of_mine; it has UCB1, Mine"),
        ("things_of_mine:Place", "expected a policy class in things_of_mine; it has UCB1, Mine"),
        ("things_of_mine:broken", "expected a policy class"),
    ],
)
def test_what_is_not_there_is_named(module, name, complaint):
    with pytest.raises(ValueError, match=re.escape(complaint)):
        registry.policy_named(name)


def test_the_command_line_and_study_files_take_module_and_name(module, tmp_path):
    words = ["compare", "things_of_mine:Mine:exploration=1", "ucb1"]
    words += ["--environment", "things_of_mine:Place:means=[0.1,0.9]", "--horizon", "50"]
    command = [sys.executable, "-m", "tacit", *words, "--repetitions", "9", "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "mine" in done.stdout


def test_an_own_environment_is_equal_to_a_built_in_one():
    assert Bernoulli(means=(0.1, 0.9)) == registry.build(
        registry.environment_named("tacit.arms:Bernoulli"), {}, {"means": [0.1, 0.9]}
    )
