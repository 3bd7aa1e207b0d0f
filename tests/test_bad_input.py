"""Two hundred mistakes: each is answered in one line, ends with 2, and leaves everything as it was."""

from __future__ import annotations

import gzip
import io
from typing import Any

import numpy as np
import pytest

import tacit.cli

POLICIES = [
    "ucb9",
    "",
    ":",
    "UCB1",
    "ucb1,klucb",
    "ucb1:exploration",
    "ucb1:=3",
    "ucb1:exploration=-1",
    "ucb1:exploration=wide",
    "ucb1:exploration=[1]",
    "ucb1:exploration=true",
    "ucb1:explor=1",
    "ucb1:exploration=1,exploration=2",
    "ucb1:exploration=nan",
    "ucb1:exploration=inf",
    "ucb1:n_arms=0",
    "ucb1:n_arms=3",
    "ucb1:n_arms=2.5",
    "ucb1:n_arms=two",
    "ucb1:n_arms=-2",
    "klucb-cf:epsilon=-1",
    "klucb-cf:epsilon=0",
    "klucb-cf:epsilon=nan",
    "klucb-cf:epsilon=inf",
    "klucb-cf:epsilon=one",
    "klucb-cf:epsilon=[1]",
    "klucb-cf:epsilon={a=1}",
    "klucb-cf:corruption=3",
    "klucb-cf:corruption={p22=1}",
    "klucb-cf:corruption={p00=2,p11=0.5}",
    "sw-klucb-cf:window=0",
    "sw-klucb-cf:window=often",
    "sw-klucb-cf:window=-5",
    "sw-ucb:window=0",
    "dpse:epsilon=0",
    "dpse:failure_prob=2",
    "gap:unit=person",
    "gap:noise=none",
    "gap:graph=absent.csv",
    'gap:graph={name="rings"}',
    'gap:graph={name="ring"}',
    "exp3:exploration_prob=2",
    "colin",
    "diffusion",
    "learning-dynamics",
    "aae:horizon=0",
    "no_such_module:Policy",
    "os:PathLike",
    "tacit.arms:Bernoulli",
    "tacit.arms:Nobody",
    "tacit:UCB1",
    "json:JSONDecoder",
]

ENVIRONMENTS = [
    "mars",
    "",
    "bernoulli",
    "bernoulli:means=[]",
    "bernoulli:means=[2]",
    "bernoulli:means=[-0.1,0.5]",
    "bernoulli:means=0.5",
    "bernoulli:means=[a]",
    "bernoulli:means=[0.5",
    "bernoulli:mean=[0.5]",
    "bernoulli:means=[true,false]",
    "bernoulli:means=[nan,0.5]",
    "beta:means=[0,1]",
    "beta:means=[0.5,0.6],spread=0",
    "riser:segments=0",
    "riser:n_arms=1",
    "riser:n_arms=100000000",
    "riser:n_arms=-1",
    "riser:segments=60",
    "riser:rewards=gold",
    "riser:low=2",
    "rotating:n_arms=0",
    "rotating:n_arms=99999999999",
    "drifting:variation=-1",
    "drifting:n_arms=0",
    "adversarial:gap=3",
    "recorded",
    "recorded:file=absent.csv",
    "recorded:file=.",
    "recorded:file=notes.txt",
    "recorded:data=[[0,1]],file=good.csv",
    "recorded:data=[[0,2]]",
    "recorded:data=[[]]",
    "recorded:data=[0,1]",
    "recorded:data=words",
    "graph-feedback",
    'graph-feedback:environment={name="mars"},edge_prob=0.1',
    'graph-feedback:environment={name="bernoulli",means=[0.3,0.7]},edge_prob=2',
    'graph-feedback:environment={name="bernoulli",means=[0.3,0.7]}',
    'graph-feedback:environment={name="bernoulli",means=[0.3,0.7]},graph={name="ring",n_nodes=3}',
    "synthetic-users",
    "social-options:qualities=[0.5]",
    "changing-truth",
    "no_such_module:place:n_arms=2",
    "tacit.arms:UCB1",
    "reward-function:n_arms=2",
]

OPTIONS = [
    ["--horizon", "0"],
    ["--horizon", "-3"],
    ["--horizon", "ten"],
    ["--horizon", "1.5"],
    ["--horizon", "1.5e0"],
    ["--horizon", "1e99"],
    ["--horizon", "inf"],
    ["--horizon", "nan"],
    ["--horizon", str(10**30)],
    ["--repetitions", "0"],
    ["--repetitions", "x"],
    ["--repetitions", "2.5"],
    ["--repetitions", "1e-3"],
    ["--repetitions", "99999999"],
    ["--seed", "-1"],
    ["--seed", "x"],
    ["--workers", "0"],
    ["--workers", "many"],
    ["--engine", "cloud"],
    ["--name", ".."],
    ["--name", "a/b"],
    ["--name", ""],
    ["--epsilon", "0"],
    ["--epsilon", "x"],
    ["--epsilon", "1"],
    ["--colour", "red"],
    ["--out", "notes.txt"],
    ["--out", "notes.txt/deeper"],
    ["--environment"],
]

OTHERS = [
    ["compare"],
    ["polices"],
    ["run"],
    ["run", "absent.toml"],
    ["run", "."],
    ["run", "good.csv"],
    ["policies", "nobody"],
    ["policies", "bernoulli"],
    ["environments", "ucb1"],
    ["policies", "a", "b"],
    ["environments", "nowhere:"],
    ["guarantee"],
    ["guarantee", "ucb9"],
    ["guarantee", "klucb-cf:epsilon=nan"],
    ["guarantee", "klucb-cf:epsilon=1", "--horizon", "0"],
    ["guarantee", "klucb-cf:epsilon=1", "--delta", "2"],
    ["guarantee", "klucb-cf:epsilon=1", "--picture", "a.xyz"],
    ["guarantee", "klucb-cf:epsilon=1", "--picture", "notes.txt/a.png"],
    ["audit"],
    ["audit", "ucb1"],
    ["audit", "ucb1:n_arms=50", "--epsilon", "1"],
    ["audit", "laplace"],
    ["audit", "laplace:epsilon=x"],
    ["audit", "laplace:epsilon=1,size=2"],
    ["audit", "laplace:epsilon=1", "--environment", "riser"],
    ["audit", "klucb-cf:epsilon=1", "--epsilon", "inf"],
    ["audit", "klucb-cf:epsilon=1", "--runs", "0"],
    ["audit", "klucb-cf:epsilon=1", "--alpha", "2"],
    ["check"],
    ["check", "nobody"],
    ["check", "no_such_module:Policy"],
    ["check", "ucb1", "--horizon", "0"],
    ["check", "ucb1", "--runs", "1"],
    ["reproduce", "005"],
    ["reproduce", "nothing", "--quick"],
    ["--colour"],
    ["--version=3"],
    ["identify", "dp-top-two:epsilon=1", "--confidence", "0"],
    ["identify", "dp-top-two:epsilon=1", "--confidence", "1"],
    ["identify", "dp-top-two:epsilon=1", "--confidence", "nan"],
    ["identify", "dp-top-two:epsilon=1", "--repetitions", "0"],
    ["identify", "dp-top-two:epsilon=1", "--environment", "fitted-users"],
    ["identify", "dp-top-two:epsilon=0"],
    ["identify"],
    ["run", "study.csv", "extra"],
    ["run", "good.csv", "--partitions", "0"],
    ["run", "good.csv", "--workers", "1e9"],
    ["check", "ucb1", "--environment", "fitted-users"],
    ["check", "ucb1", "--horizon", "1e99"],
    ["policies", "ucb1", "--colour"],
    ["policies", "klucb-cf:epsilon=1"],
    ["environments", "ucb1:exploration=2"],
    ["evaluate"],
    ["evaluate", "good.csv"],
    ["evaluate", "good.csv", "ucb1"],
    ["evaluate", "notes.txt", "ucb1"],
    ["evaluate", "good.csv", "ucb1", "--n-arms", "-1"],
    ["evaluate", "good.csv", "ucb1", "--seed", "-1"],
    ["evaluate", "open-bandit:campaign=moon", "ucb1"],
    ["evaluate", "open-bandit:planet=mars", "ucb1"],
    ["evaluate", "open-bandit:directory=folder", "ucb1"],
    ["reproduce", ""],
    ["reproduce", "all", "nothing"],
    ["reproduce", "002", "--workers", "0"],
    ["reproduce", "003-changes", "--quick", "--out", "notes.txt"],
    ["reproduce", "003-changes", "--quick", "--engine", "nope"],
    ["reproduce", "--table", "notes.txt/x.md"],
    ["reproduce", "--table", "x.md"],
    ["ledger", "allow"],
    ["ledger", "allow", "l.db"],
    ["ledger", "allow", "l.db", "--epsilon", "-1"],
    ["ledger", "allow", "l.db", "--epsilon", "nan"],
    ["ledger", "allow", "l.db", "--epsilon", "1", "--delta", "2"],
    ["ledger", "allow", "l.db", "--epsilon", "1", "--period", "week"],
    ["ledger", "allow", "l.db", "--epsilon", "1", "--subject", ""],
    ["ledger", "allow", "folder", "--epsilon", "1"],
    ["ledger", "allow", "notes.txt", "--epsilon", "1"],
    ["ledger", "allow", "folder/none/l.db", "--epsilon", "1"],
    ["ledger", "allow", "", "--epsilon", "1"],
    ["ledger", "show", "absent.db"],
    ["ledger", "show", "folder"],
    ["ledger", "show", "notes.txt"],
    ["ledger", "show", "mysql://x"],
    ["ledger", "verify", "folder"],
    ["ledger", "verify", "notes.txt"],
    ["ledger", "export", "absent.db", "x.csv"],
    ["ledger", "export", "notes.txt", "x.csv"],
    ["ledger", "export", "notes.txt", "x.xls"],
    ["ledger", "forget"],
]

# Finding E10: what is said must name the mistake.
SAID = [
    (["compare", "os:system"], "expected NAME:parameter=value or MODULE:Class, got 'system'"),
    (["compare", "os:system:"], "expected a policy class in os"),
    (["compare", "ucb1", "--environment", "os:getcwd:n_arms=2"], "os:getcwd"),
    (["compare", "ucb1", "--horizon", "ten"], "expected a whole number from 1 to 10^15, got 'ten'"),
    (["identify", "dp-top-two:epsilon=1", "--limit", "9" * 20], "from 1 to 10^15"),
    (["identify", "dp-top-two:epsilon=1", "--limit", "0"], "from 1 to 10^15"),
    (["run", "folder"], "folder: cannot read it (expected a file, got a folder)"),
    (["evaluate", "folder", "ucb1"], "folder: expected a file, got a folder"),
    (["evaluate", "absent.csv", "ucb1"], "absent.csv: no such file"),
    (["reproduce", "--table", "folder"], "nothing was measured yet"),
    (["policies", ""], "no policy is called ''; `tacit policies` lists them"),
    (["environments", ""], "no environment is called ''; `tacit environments` lists them"),
    (["compare", "ucb1", "--environment", "folder"], "`tacit environments` lists them"),
    (["guarantee", ""], "no policy is called ''"),
]

STUDY = """
name = "study"
horizon = 50
repetitions = 2
[environment]
name = "riser"
segments = 2
[[policy]]
name = "klucb-cf"
[grid]
"policy.epsilon" = [1.0]
"""

CHANGES = [
    ("horizon = 50", "horizon = 0"),
    ("horizon = 50", "horizon = true"),
    ("horizon = 50", 'horizon = "long"'),
    ("horizon = 50", f"horizon = {10**30}"),
    ("horizon = 50", "horizon = 50.5"),
    ("horizon = 50", "horizons = 50"),
    ("repetitions = 2", "repetitions = 0"),
    ("repetitions = 2", "repetitions = 99999999"),
    ("repetitions = 2", "repetitions = 2\nseed = -1"),
    ("repetitions = 2", "repetitions = 2\nseed = 0.5"),
    ("repetitions = 2", "repetitions = 2\ncheckpoints = 0"),
    ('name = "study"', "name = 3"),
    ('name = "study"', 'name = "../study"'),
    ('name = "study"', 'name = ""'),
    ("[environment]", "[world]"),
    ("[environment]", "[[environment]]"),
    ("[[policy]]", "[policy]"),
    ("[[policy]]", "[[polisy]]"),
    ('name = "riser"', 'name = "riserr"'),
    ('name = "riser"', "name = 3"),
    ('name = "riser"', ""),
    ("segments = 2", "segments = 0"),
    ("segments = 2", "segments = 60"),
    ("segments = 2", 'segments = "many"'),
    ("segments = 2", "parts = 2"),
    ('name = "klucb-cf"', 'name = "klucb-cg"'),
    ('name = "klucb-cf"', ""),
    ('name = "klucb-cf"', "name = 3"),
    ('name = "klucb-cf"', 'name = "klucb-cf"\nlabel = 3'),
    ('name = "klucb-cf"', 'name = "klucb-cf"\nsigma = 3'),
    ('name = "klucb-cf"', 'name = "klucb-cf"\ncorruption = {p22 = 1}'),
    ('"policy.epsilon"', "policy.epsilon"),
    ('"policy.epsilon"', '"policy.epsilom"'),
    ('"policy.epsilon"', '"ucb1.epsilon"'),
    ('"policy.epsilon"', '"environment.epsilon"'),
    ("[1.0]", "[]"),
    ("[1.0]", "1.0"),
    ("[1.0]", "[-1.0]"),
    ("[1.0]", '["one"]'),
    ("[1.0]", "[nan]"),
    ("[1.0]", "[1.0]\nhorizon = [0]"),
    ("[1.0]", "[1.0]\nhorizon = [0.5]"),
    ("[grid]", "[grid"),
    ("[grid]", "grid = 3"),
]


def gzipped(text: bytes) -> bytes:
    return gzip.compress(text)[:-12]


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


# The name of a file, what it holds, and what must be said about it.
REWARDS = {
    "empty.csv": (b"", ""),
    "words.csv": (b"a,b\nc,d\n", "line 2: expected a number, got 'c'"),
    "halfheader.csv": (b"0.5,b\n0,1\n", "line 1: expected numbers or a header, got 'b'"),
    "semicolons.csv": (b"0.5;0.5\n0;1\n", ""),
    "ragged.csv": (b"0,1\n0,1,1\n", "line 2: expected 2 cells, got 3"),
    "short.csv": (b"a,b\n0,1\n1\n", "line 3: expected 2 cells, got 1"),
    "hole.csv": (b"0,1\n,1\n", "line 2: expected a number, got 'nothing'"),
    "outside.csv": (b"0,1\n0,7\n", "expected rewards in [0, 1], got 7.0 in row 1, arm 1"),
    "nan.csv": (b"0,1\nnan,1\n", "expected rewards in [0, 1], got nan"),
    "binary.csv": (bytes(range(256)), "binary.csv: not a text file in UTF-8"),
    "empty.npy": (b"", "empty.npy: not a NumPy file"),
    "cut.npy": (npy(np.zeros((100, 2)))[:60], "cut.npy: not a NumPy file"),
    "text.npy": (b"0,1\n", "text.npy: not a NumPy file"),
    "objects.npy": (npy(np.array([[None, 1]], dtype=object)), "objects.npy: not a NumPy file"),
    "strings.npy": (npy(np.array([["a", "b"]])), "strings.npy: expected numbers"),
    "flat.npy": (npy(np.zeros(3)), "flat.npy: expected rounds x arms, got shape (3,)"),
    "short.npy": (npy(np.zeros((3, 2))), "expected horizon <= 3 recorded rounds"),
    "empty.parquet": (b"", "empty.parquet: not a Parquet file"),
    "broken.parquet": (b"PAR1 and then nothing PAR1", "broken.parquet: not a Parquet file"),
    "rewards.xls": (b"0,1\n", "expected a .csv, .parquet or .npy file, got 'rewards.xls'"),
}

GRAPHS = {
    "empty.edges": (b"", ""),
    "words.edges": (b"ann bob\n", "line 1: expected an integer"),
    "single.edges": (b"0 1\n2\n", "line 2: expected at least 2 fields"),
    "negative.edges": (b"0 -1\n", "negative.edges: "),
    "cut.edges.gz": (gzipped(b"0 1\n" * 50), "a compressed file that is cut short or broken"),
    "fake.edges.gz": (b"\x1f\x8bnothing", "a compressed file that is cut short or broken"),
    "binary.edges": (bytes(range(255, 127, -1)), "not a text file in UTF-8"),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a few files, and a command line that answers in this process."""
    (tmp_path / "notes.txt").write_text("0,1\n")
    (tmp_path / "good.csv").write_text("0,1\n1,0\n")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tacit.cli, "install_sigint_handler", lambda: None)
    monkeypatch.setattr("tacit.core.progress._announce", lambda: None)  # of an empty cache
    return tmp_path


def mistake(words, folder, monkeypatch, capfd):
    """Run a command that must fail and return what it says."""
    before = {path: path.stat().st_size for path in folder.rglob("*")}
    monkeypatch.setattr("sys.argv", ["tacit", *words])
    with pytest.raises(SystemExit) as ended:
        tacit.cli.main()
    out, complaint = capfd.readouterr()
    assert ended.value.code == 2, out + complaint
    assert out == ""
    assert len(complaint.splitlines()) == 1, complaint
    assert complaint.startswith("tacit: ")
    assert "Traceback" not in complaint
    assert {path: path.stat().st_size for path in folder.rglob("*")} == before
    return complaint


SHORT = ["--horizon", "20", "--repetitions", "2", "--workers", "1"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_bad_policy(policy, here, monkeypatch, capfd):
    words = ["compare", policy, "--environment", "bernoulli:means=[0.3,0.7]", *SHORT]
    mistake(words, here, monkeypatch, capfd)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_bad_environment(environment, here, monkeypatch, capfd):
    mistake(["compare", "uniform", "--environment", environment, *SHORT], here, monkeypatch, capfd)


@pytest.mark.parametrize("option", OPTIONS, ids=" ".join)
def test_a_bad_option(option, here, monkeypatch, capfd):
    words = ["compare", "uniform", "--horizon", "20", "--repetitions", "2", *option]
    mistake(words, here, monkeypatch, capfd)


@pytest.mark.parametrize("words", OTHERS, ids=" ".join)
def test_another_bad_command(words, here, monkeypatch, capfd):
    mistake(words, here, monkeypatch, capfd)


@pytest.mark.parametrize(("words", "said"), SAID, ids=lambda each: "".join(each)[:40])
def test_a_bad_command_whose_mistake_is_named(words, said, here, monkeypatch, capfd):
    complaint = mistake(words, here, monkeypatch, capfd)
    assert said in complaint
    assert len(complaint) < 300


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change[1][:40])
def test_a_bad_study(change, here, monkeypatch, capfd):
    assert change[0] in STUDY
    (here / "study.toml").write_text(STUDY.replace(*change, 1))
    complaint = mistake(["run", "study.toml"], here, monkeypatch, capfd)
    assert "study.toml" in complaint


@pytest.mark.parametrize("name", REWARDS)
def test_a_bad_file_of_rewards(name, here, monkeypatch, capfd):
    content, words = REWARDS[name]
    (here / name).write_bytes(content)
    place = f"recorded:file={name}"
    complaint = mistake(
        ["compare", "uniform", "--environment", place, *SHORT], here, monkeypatch, capfd
    )
    assert words in complaint
    if words != "expected horizon <= 3 recorded rounds":
        assert name in complaint


@pytest.mark.parametrize("name", GRAPHS)
def test_a_bad_file_of_edges(name, here, monkeypatch, capfd):
    content, words = GRAPHS[name]
    (here / name).write_bytes(content)
    inner = 'environment={name="bernoulli",means=[0.3,0.7]}'
    place = f"graph-feedback:{inner},graph={name}"
    complaint = mistake(
        ["compare", "ucb-n", "--environment", place, *SHORT], here, monkeypatch, capfd
    )
    assert words in complaint


def test_a_result_that_is_not_there(here):
    # Finding E8: it was called "not a result of tacit run".
    from tacit.simulation.files import read

    for name, words in (
        ("nosuch", "nosuch: no such file"),
        ("folder", "folder: expected a file, got a folder"),
        ("notes.txt", "notes.txt: not a result of tacit run"),
    ):
        with pytest.raises(ValueError, match=words):
            read(name)


def test_there_are_two_hundred():
    tables = (POLICIES, ENVIRONMENTS, OPTIONS, OTHERS, SAID, CHANGES, REWARDS, GRAPHS)
    assert sum(map(len, tables)) >= 200


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"0,1\n1,0\n", 2),
        (b"\xef\xbb\xbf0,1\n1,0\n", 2),
        (b"left,right\n0,1\n1,0\n", 2),
        (b"\xef\xbb\xbfleft,right\n0,1\n1,0\n", 2),
        (b"0,1\r\n1,0\r\n", 2),
        (b"1e-1, 0.5\n1,0\n", 2),
    ],
)
def test_no_row_of_a_good_file_is_lost(content, rows, tmp_path):
    from tacit.arms import Recorded

    (tmp_path / "rewards.csv").write_bytes(content)
    assert Recorded(file=tmp_path / "rewards.csv").array.shape == (rows, 2)
