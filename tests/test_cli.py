"""The command line: what it prints, what it writes, how it complains."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands import tacit
from tacit.cli.output import show
from tacit.core.files import write_atomically
from tacit.core.progress import progress_bar


def test_a_process_of_its_own_says_the_same(tmp_path):
    words = ["compare", "ucb9"]
    command = [sys.executable, "-m", "tacit", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    here = tacit(*words, cwd=tmp_path)
    assert done.returncode == here.returncode == 2
    assert (done.stdout, done.stderr) == (here.stdout, here.stderr)


def test_compare_writes_files_that_open_elsewhere(tmp_path):
    done = tacit(
        "compare",
        "uniform",
        "klucb-cf:epsilon=2",
        "--horizon",
        "300",
        "--repetitions",
        "3",
        "--workers",
        "1",
        "--json",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    names = sorted(path.name for path in (tmp_path / "results").iterdir())
    assert names == [
        "compare-regret.png",
        "compare-regret.svg",
        "compare-summary.csv",
        "compare.parquet",
    ]
    assert sorted(said["files"]) == [f"results/{name}" for name in names]
    assert said["summary"][1]["epsilon"] == pytest.approx(2.0)
    import pyarrow.parquet as pq

    table = pq.read_table(tmp_path / "results" / "compare.parquet")
    assert {"label", "repetition", "round", "regret", "reward"} <= set(table.column_names)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["compare", "ucb9"], "no policy is called 'ucb9'"),
        (["compare", "ucb1", "--environment", "mars"], "no environment is called 'mars'"),
        (["compare", "ucb1:exploration"], "expected NAME:parameter=value"),
        (["compare", "klucb-cf:epsilon=-1"], "expected epsilon between 1e-9 and 30, got -1"),
        (["compare", "ucb1", "--horizon", "0"], "--horizon"),
        (["run", "absent.toml"], "cannot read it"),
        (["guarantee", "klucb-cf:epsilon=nan"], "expected epsilon to be a number, got nan"),
        (["audit", "ucb1"], "claims no finite one"),
        (["reproduce", "005"], "no study is called '005'"),
        (["polices"], "No such command"),
        (["compare"], "Missing argument"),
        (["compare", "klucb-cf:epsilon=one"], "expected epsilon to be a number, got 'one'"),
        (["compare", "klucb-cf:epsilon=1,epsilon=2"], "epsilon is written twice"),
        (["compare", "klucb-cf:epsilon=1", "--epsilon", "2"], "not both"),
        (["compare", "ucb1:n_arms=50"], "expected n_arms to be 2 as in bernoulli, got 50"),
        (["compare", "ucb1", "--environment", "bernoulli"], "bernoulli needs means"),
        (
            ["compare", "ucb1", "--environment", "fitted-users"],
            "an environment of 'users'",
        ),
        (
            ["compare", "gap", "--environment", "bernoulli:means=[a]"],
            "inside brackets words need quotes",
        ),
        (["compare", "ucb1", "--name", ".."], "expected name"),
        (["guarantee", "klucb-cf", "--picture", "a.xyz"], "expected a .png, .svg or .pdf file"),
        (["audit", "laplace:epsilon=1", "--environment", "riser"], "needs no environment"),
        (["audit", "laplace"], "laplace needs epsilon"),
        (["audit", "laplace:epsilon=1,size=2"], "laplace has no parameter 'size'"),
        (["audit", "laplace:epsilon=x"], "expected epsilon to be a number, got 'x'"),
        (["audit", "klucb-cf:epsilon=1", "--epsilon", "inf"], "expected epsilon finite, got inf"),
        (["audit", "ucb1:n_arms=50", "--epsilon", "1"], "expected n_arms to be 2"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(tmp_path, words, complaint):
    done = tacit(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_every_infinite_entry_of_a_guarantee_says_why(tmp_path):
    words = ["guarantee", "diffusion-outsiders:epsilon=1,variant=published", "--json"]
    rows = json.loads(tacit(*words, cwd=tmp_path).stdout)["spans"]
    infinite = [row for row in rows if row["epsilon"] in (None, "inf")]
    assert len(infinite) >= 2
    for row in infinite:
        start = f"No finite epsilon holds at delta = {row['delta']:g}: it is at least"
        assert row["remark"].startswith(start)


def test_a_published_guarantee_at_a_delta_has_two_ends(tmp_path):
    words = ["guarantee", 'colin:privacy={kind="published",epsilon=2,trust="central"}', "--json"]
    rows = json.loads(tacit(*words, cwd=tmp_path).stdout)["spans"]
    pure, loose = rows[:2]
    assert (pure["delta"], loose["delta"]) == (0, 1e-6)
    low = float(loose["remark"].removeprefix("some change needs "))
    assert low < loose["epsilon"] < 1.05 * low < pure["epsilon"] / 4


def test_guarantee_in_words_numbers_and_json(tmp_path):
    words = ["guarantee", "sw-klucb-cf:epsilon=1", "--horizon", "100"]
    plain = tacit(*words, "--picture", "curve.svg", cwd=tmp_path)
    assert "epsilon = 1" in plain.stdout
    assert "does not hold" in plain.stdout
    assert "a user with 100 rewards" in plain.stdout
    assert (tmp_path / "curve.svg").read_text().startswith("<?xml")
    said = json.loads(tacit(*words, "--json", cwd=tmp_path).stdout)
    assert said["guarantee"]["unit"] == "reward"
    last = said["curve"][-1]
    assert last["rounds"] == 100
    assert last["epsilon"] == pytest.approx(83.5, abs=0.1)


def test_what_one_person_loses_and_what_a_mechanism_does(tmp_path):
    words = ["guarantee", "sw-klucb-cf:epsilon=1", "--rewards", "50", "--horizon", f"{10**15}"]
    said = tacit(*words, cwd=tmp_path).stdout
    assert "One person with 50 rewards loses epsilon 50, which hides nothing; or epsilon 47.65" in (
        said
    )
    assert "Not protected: " in said
    person = json.loads(tacit(*words, "--json", cwd=tmp_path).stdout)["person"]
    assert [each["unit"] for each in person] == ["user", "user"]
    said = tacit("guarantee", "laplace:epsilon=1", cwd=tmp_path).stdout
    assert "epsilon = 1" in said
    listed = json.loads(tacit("mechanisms", "--json", cwd=tmp_path).stdout)
    laplace = next(row for row in listed if row["name"] == "laplace")
    assert (laplace["variance at epsilon 1"], laplace["secure"]) == (2.0, "yes")
    said = tacit("guarantee", "uniform", cwd=tmp_path).stdout
    assert "No record is used" in said
    assert "epsilon 0 a user" not in said


def test_audit_refutes_with_exit_1(tmp_path):
    words = ["audit", "klucb-cf:epsilon=1", "--horizon", "5", "--runs", "5000"]
    honest = tacit(*words, cwd=tmp_path)
    assert honest.returncode == 0, honest.stderr
    assert "not refuted" in honest.stdout
    liar = tacit(*words, "--epsilon", "0.5", "--json", "--picture", "two.png", cwd=tmp_path)
    assert liar.returncode == 1, liar.stderr
    assert json.loads(liar.stdout)["verdict"] == "refuted"
    assert (tmp_path / "two.png").stat().st_size > 1000


def test_an_audit_that_saw_nothing_exits_with_3(tmp_path):
    words = ["audit", "gap:epsilon=1,failure_prob=0.9", "--runs", "500"]
    silent = tacit(*words, "--horizon", "20", cwd=tmp_path)
    assert silent.returncode == 3, silent.stderr
    assert "was not put to the test" in silent.stdout
    long_enough = tacit(*words, "--json", cwd=tmp_path)
    assert long_enough.returncode == 0, long_enough.stderr
    assert json.loads(long_enough.stdout)["verdict"] == "not refuted"


def test_an_audit_can_be_of_secure_noise_and_has_an_end(tmp_path):
    words = ["audit", "laplace:epsilon=1", "--runs", "20000", "--secure", "--json"]
    said = tacit(*words, cwd=tmp_path)
    assert json.loads(said.stdout)["verdict"] == "not refuted", said.stdout
    refused = tacit("audit", "l2-ball:epsilon=1,dimension=3", "--secure", cwd=tmp_path)
    assert refused.returncode == 2
    assert "no exact sampler" in refused.stderr
    endless = tacit("audit", "laplace:epsilon=1", "--runs", "99999999999", cwd=tmp_path)
    assert endless.returncode == 2
    assert "1,000,000,000" in endless.stderr


def test_policies_and_environments_list_everything(tmp_path):
    from tacit.core.registry import environments, policies

    listed = json.loads(tacit("policies", "--json", cwd=tmp_path).stdout)
    assert {row["name"] for row in listed} == set(policies())
    listed = json.loads(tacit("environments", "--json", cwd=tmp_path).stdout)
    assert {row["name"] for row in listed} == set(environments())


def test_a_policy_or_environment_tells_its_parameters(tmp_path):
    said = tacit("policies", "klucb-cf", cwd=tmp_path).stdout
    assert "Number of arms K." in said
    assert "epsilon" in said
    schema = json.loads(tacit("environments", "bernoulli", "--json", cwd=tmp_path).stdout)
    assert schema["required"] == ["means"]
    wrong = tacit("policies", "klucb-cg", cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "did you mean klucb-cf" in wrong.stderr


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("horizon = 50", "horizon = true"), "expected horizon a whole number"),
        (("horizon = 50", f"horizon = {10**30}"), "expected horizon a whole number"),
        (("[[policy]]", "[policy]"), "at least one [[policy]]"),
        (('name = "klucb-cf"', "name = 3"), "no policy is called 3"),
        (('name = "klucb-cf"', 'name = "klucb-cf"\nlabel = 3'), "expected label text, got 3"),
        (('"policy.epsilon"', "policy.epsilon"), 'in quotes: "policy.epsilon"'),
        (("[1.0]", '["one"]'), "expected epsilon to be a number, got 'one'"),
        (("[1.0]", "[1.0]\nhorizon = [0]"), "expected grid horizon whole numbers >= 1, got 0"),
        (("segments = 2", "segments = 60"), "expected horizon >= 60"),
    ],
)
def test_a_bad_study_is_one_line_and_leaves_nothing(tmp_path, change, complaint):
    good = (
        'horizon = 50\nrepetitions = 2\n[environment]\nname = "riser"\nsegments = 2\n'
        '[[policy]]\nname = "klucb-cf"\n[grid]\n"policy.epsilon" = [1.0]\n'
    )
    assert change[0] in good
    (tmp_path / "study.toml").write_text(good.replace(*change))
    done = tacit("run", "study.toml", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert complaint in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]


def test_a_folder_that_cannot_be_written_to_is_named_before_the_work(tmp_path):
    (tmp_path / "taken").write_text("")
    done = tacit("compare", "ucb1", "--out", "taken", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "tacit: taken: not a directory\n")


def test_a_closed_pipe_is_no_mistake(tmp_path):
    command = f"{sys.executable} -m tacit policies | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("where", "complaint"),
    [
        (">&-", "tacit: standard output is closed\n"),
        (">/dev/full", "tacit: standard output: no space left on device\n"),
    ],
)
def test_an_output_that_takes_nothing_is_said_in_one_line(where, complaint):
    command = f"{sys.executable} -m tacit policies {where}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, complaint)


def test_a_full_disk_is_said_with_the_name_of_the_file(tmp_path):
    def write(file):
        file.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left") as caught:
        write_atomically(tmp_path / "result.parquet", write)
    assert caught.value.filename == str(tmp_path / "result.parquet")
    assert list(tmp_path.iterdir()) == []


def test_long_work_writes_a_line_a_minute_where_there_is_no_terminal(monkeypatch, capsys):
    now = iter([0.0, 30.0, 61.0, 61.0, 90.0])
    monkeypatch.setattr("tacit.core.progress.time.monotonic", lambda: next(now))
    with progress_bar("reproduce") as progress:
        for done in (1, 2, 3):
            progress(done, 1_200)
    assert capsys.readouterr().err == "tacit: reproduce: 2 of 1,200\n"


def test_a_narrow_terminal_gets_columns_below_each_other(monkeypatch, capsys):
    # Finding E10: `tacit guarantee` at 40 columns printed one letter a line.
    rows = [
        {"what": each, "epsilon": 1.0, "delta": 0.0, "unit": "reward", "remark": "holds for ever"}
        for each in ("one reward", "a user with 100 rewards")
    ]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for width, below in (("40", True), ("120", False)):
        monkeypatch.setenv("COLUMNS", width)
        show(rows, False)
        lines = capsys.readouterr().out.splitlines()
        assert ("remark: holds for ever" in lines) == below
        assert all(len(line) > 5 for line in lines if line)


@pytest.mark.parametrize("count", ["1e2", "1E2", "100", "1_00"])
def test_a_count_may_have_an_exponent(count, tmp_path):
    # Finding E10: --horizon 1e5 was refused in the words of a library.
    words = ["compare", "uniform", "--repetitions", "2", "--workers", "1", "--json"]
    done = tacit(*words, "--horizon", count, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"][0]["horizon"] == 100


def test_the_version_is_said(tmp_path):
    # Finding E10
    import tacit as package

    done = tacit("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"tacit {package.__version__}\n")


def test_ctrl_c_in_the_first_import_ends_without_a_traceback(tmp_path):
    # Finding E10: Ctrl-C within 0.2 s of the start printed Python's traceback of an import.
    (tmp_path / "sitecustomize.py").write_text(
        "import signal, sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer':\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Stop())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "tacit", "policies"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=False,
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 1


def test_identify_prints_no_result_for_runs_that_were_cut_off(tmp_path):
    # Findings N1 and N6: a median of few runs, and the limit as if it were one.
    words = [
        "identify",
        "top-two-cf",
        "--environment",
        "bernoulli:means=[0.5,0.5]",
        "--limit",
        "50",
    ]
    rows = json.loads(tacit(*words, "--repetitions", "2", "--json", cwd=tmp_path).stdout)
    assert rows == [{"arm": "none", "named in": 2, "rounds": "not decided in 50", "95%": ""}]
