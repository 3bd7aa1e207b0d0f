"""The documentation says what really happens: its code runs, its commands print what is shown."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path

import pytest

import tacit
import tacit_studies
from commands import tacit as run_tacit
from tacit.core import registry
from tacit.core.kernels import INTERPRETED

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = (
    "../README.md",
    "index.md",
    "quickstart.md",
    "idea.md",
    "adding-a-policy.md",
    "notation.md",
    "mechanisms.md",
    "shuffler.md",
    "logs.md",
    "aggregation.md",
)
WITH_COMMANDS = ("../README.md", "quickstart.md", "logs.md")
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.REPORT_NDIFF
NEW_POLICY = "src/tacit/arms/policies/private_greedy.py"


@pytest.fixture(autouse=True)
def clean():
    """Let no example register something for the tests after it."""
    kept = {what: dict(known) for what, known in registry._registered.items()}
    yield
    for what, known in kept.items():
        registry._registered[what].clear()
        registry._registered[what].update(known)


def blocks(page: str, kind: str) -> list[tuple[str, str]]:
    """Return (title, text) of every fenced block of a kind."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [(title, body) for found, title, body in FENCE.findall(text) if found == kind]


def doctest_failures(test: doctest.DocTest) -> str:
    report: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    return "".join(report)


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType(f"page_{page.removesuffix('.md').replace('-', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look there
    for title, code in blocks(page, "python"):
        file = tmp_path / Path(title or "block.py").name
        file.write_text(code, encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, str(file), "exec"), module.__dict__)
    for test in doctest.DocTestFinder().find(module):
        assert doctest_failures(test) == "", test.name


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "pycon")])
def test_the_prompt_of_a_page_answers_as_shown(page):
    text = "".join(body for _, body in blocks(page, "pycon"))
    test = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    assert len(test.examples) >= 8
    assert doctest_failures(test) == ""


def test_a_wrong_answer_is_noticed():
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", "wrong", 0)
    assert "Failed example" in doctest_failures(test)


def modules() -> list[str]:
    """Return all modules of both distributions."""
    found = [
        info.name
        for package in (tacit, tacit_studies)
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    return ["tacit", *sorted(name for name in found if not name.endswith("__main__"))]


@pytest.mark.parametrize("name", modules())
def test_the_examples_of_a_module_run(name):
    finder = doctest.DocTestFinder(exclude_empty=True)
    module = importlib.import_module(name)
    for test in finder.find(module, name):
        assert doctest_failures(test) == "", test.name


def test_examples_are_found_in_every_package():
    packages = {info.name for info in pkgutil.iter_modules(tacit.__path__) if info.ispkg}
    with_examples = {
        name.split(".")[1]
        for name in modules()
        if name.count(".")
        and ">>>" in Path(importlib.import_module(name).__file__ or "").read_text()
    }
    assert packages - {"cli", "client", "demo", "service"} <= with_examples


def test_every_policy_has_an_example():
    from tacit.core.registry import policies

    without = [kind.__name__ for kind in policies().values() if ">>>" not in (kind.__doc__ or "")]
    assert without == []


def commands() -> list[tuple[str, str, str]]:
    """Return (page, command, what it prints) of every console block of the pages with commands."""
    return [
        (page, command, shown)
        for page in WITH_COMMANDS
        for _, body in blocks(page, "console")
        for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", body, re.MULTILINE)
    ]


@pytest.mark.skipif(INTERPRETED, reason="seconds when compiled, minutes when interpreted")
@pytest.mark.parametrize(
    ("page", "command", "shown"), commands(), ids=lambda text: text.split("\n")[0]
)
def test_a_command_prints_what_is_shown(page, command, shown, tmp_path):
    for title, text in [*blocks(page, "toml"), *blocks(page, "csv")]:
        (tmp_path / title).write_text(text, encoding="utf-8")
    words = shlex.split(command)
    assert words[0] == "tacit"
    done = run_tacit(*words[1:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # A shown end of "..." leaves out the rest; "..." alone in a line leaves out lines.
    same = doctest.OutputChecker().check_output(shown, done.stdout, FLAGS)
    assert same, f"shown:\n{shown}\nprinted:\n{done.stdout}"


def test_the_house_names_what_stands_there():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:src|studies|tests|clients)/[\w/.]+)`", text))
    assert len(named) > 25
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    packages = {info.name for info in pkgutil.iter_modules(tacit.__path__) if info.ispkg}
    drawn = text.partition("```text")[2].partition("```")[0]
    assert [name for name in sorted(packages) if not re.search(rf"\b{name}\b", drawn)] == []


def test_the_page_of_the_tests_names_what_stands_there():
    text = (DOCS / "testing.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+(?:\.py)?)(?:::(\w+))?`", text)
    assert len(set(named)) > 9
    for path, test in named:
        assert (ROOT / path).exists(), path
        source = (ROOT / path).read_text(encoding="utf-8") if test else ""
        assert not test or f"\ndef {test}(" in source, f"{path}::{test}"


PLUGIN = """
import tacit.arms
from private_greedy import PrivateGreedy

tacit.arms.PrivateGreedy = PrivateGreedy
tacit.arms.__all__.append("PrivateGreedy")
"""


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="seconds when compiled, minutes when interpreted")
def test_the_new_policy_passes_the_battery(tmp_path):
    (code,) = [
        code for title, code in blocks("adding-a-policy.md", "python") if title == NEW_POLICY
    ]
    (tmp_path / "private_greedy.py").write_text(code, encoding="utf-8")
    (tmp_path / "entered.py").write_text(PLUGIN, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "entered",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist.plugin",
            "tests/battery",
            "-k",
            "private-greedy and not compiled_equals_interpreted",
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    (passed,) = re.findall(r"(\d+) passed", done.stdout)
    assert int(passed) >= 25


def test_every_name_in_the_notation_exists():
    source = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "src").rglob("*.py"))
    text = (DOCS / "notation.md").read_text(encoding="utf-8")
    names = {
        word
        for code in re.findall(r"`([^`]+)`", text)
        for word in re.findall(r"[A-Za-z_]\w+", code)
    }
    assert len(names) > 60
    missing = sorted(n for n in names if not re.search(rf"\b{re.escape(n)}\b", source))
    assert missing == []


def test_every_page_is_in_the_contents():
    contents = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"[\w/-]+\.md", contents))
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert pages == listed


def test_every_package_has_a_reference_page():
    packages = {info.name for info in pkgutil.iter_modules(tacit.__path__) if info.ispkg}
    assert packages - {"cli", "demo"} <= {path.stem for path in (DOCS / "reference").glob("*.md")}


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).is_file(), target
