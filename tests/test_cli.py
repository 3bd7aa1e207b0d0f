"""The command line: what it prints, what it writes, how it complains."""

import json
import subprocess
import sys

import pytest


def tacit(*words, cwd):
    command = [sys.executable, "-m", "tacit.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def test_compare_writes_files_that_open_elsewhere(tmp_path):
    done = tacit(
        "compare", "uniform", "klucb-cf:epsilon=2", "--horizon", "300", "--repetitions", "3",
        "--workers", "1", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    names = sorted(path.name for path in (tmp_path / "results").iterdir())
    assert names == [
        "compare-regret.png",
        "compare-regret.svg",
        "compare-summary.csv",
        "compare.parquet",
    ]
    assert sorted(told["files"]) == [f"results/{name}" for name in names]
    assert told["summary"][1]["epsilon"] == pytest.approx(2.0)
    import pyarrow.parquet as pq

    table = pq.read_table(tmp_path / "results" / "compare.parquet")
    assert {"label", "repetition", "round", "regret", "reward"} <= set(table.column_names)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["compare", "ucb9"], "no policy is called 'ucb9'"),
        (["compare", "ucb1", "--world", "mars"], "no world is called 'mars'"),
        (["compare", "ucb1:exploration"], "expected NAME:parameter=value"),
        (["compare", "klucb-cf:epsilon=-1"], "expected epsilon > 0, got -1"),
        (["compare", "ucb1", "--horizon", "0"], "--horizon"),
        (["run", "absent.toml"], "cannot read it"),
        (["guarantee", "klucb-cf:epsilon=nan"], "expected epsilon > 0"),
        (["audit", "ucb1"], "claims no finite one"),
        (["reproduce", "005"], "no study is called '005'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(tmp_path, words, complaint):
    done = tacit(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_guarantee_in_words_numbers_and_json(tmp_path):
    words = ["guarantee", "sw-klucb-cf:epsilon=1", "--horizon", "100"]
    plain = tacit(*words, "--picture", "curve.svg", cwd=tmp_path)
    assert "epsilon = 1" in plain.stdout
    assert "does not hold" in plain.stdout
    assert "a user with 100 rewards" in plain.stdout
    assert (tmp_path / "curve.svg").read_text().startswith("<?xml")
    told = json.loads(tacit(*words, "--json", cwd=tmp_path).stdout)
    assert told["guarantee"]["unit"] == "reward"
    last = told["curve"][-1]
    assert last["rounds"] == 100
    assert last["epsilon"] == pytest.approx(83.5, abs=0.1)


def test_audit_refutes_with_exit_1(tmp_path):
    words = ["audit", "klucb-cf:epsilon=1", "--horizon", "5", "--runs", "20000"]
    honest = tacit(*words, cwd=tmp_path)
    assert honest.returncode == 0, honest.stderr
    assert "not refuted" in honest.stdout
    liar = tacit(*words, "--epsilon", "0.5", "--json", "--picture", "two.png", cwd=tmp_path)
    assert liar.returncode == 1, liar.stderr
    assert json.loads(liar.stdout)["verdict"] == "refuted"
    assert (tmp_path / "two.png").stat().st_size > 1000


def test_policies_and_worlds_list_everything(tmp_path):
    from tacit.registry import environments, policies

    listed = json.loads(tacit("policies", "--json", cwd=tmp_path).stdout)
    assert {row["name"] for row in listed} == set(policies())
    listed = json.loads(tacit("worlds", "--json", cwd=tmp_path).stdout)
    assert {row["name"] for row in listed} == set(environments())
