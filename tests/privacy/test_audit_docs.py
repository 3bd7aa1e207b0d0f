"""The pages on the audit, the ledger and the papers' claims say what really happens."""

from __future__ import annotations

import doctest
import math
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tacit.cli import app
from tacit.core.kernels import INTERPRETED
from tacit.privacy import BoundedNoiseRelease
from tiers import tiered

DOCS = Path(__file__).parents[2] / "docs"
CLAIMS = (DOCS / "claims.md").read_text(encoding="utf-8")
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = [
    pair
    for body in CONSOLE.findall(CLAIMS)
    for pair in re.findall(r"^\$ tacit (.+)\n((?:(?!\$ ).*\n)*)", body, re.MULTILINE)
]
LONG = re.compile("audit (gap|l2-calibrated-laplace):")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", ["audit.md", "ledger.md", "claims.md"])
def test_the_examples_of_the_page_run(page):
    parser = doctest.DocTestParser()
    text = (DOCS / page).read_text(encoding="utf-8")
    test = parser.get_doctest(text, {}, page, str(DOCS / page), 0)
    assert len(test.examples) >= 8
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
    report: list[str] = []
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


@pytest.mark.skipif(INTERPRETED, reason="seconds when compiled, minutes when interpreted")
@pytest.mark.parametrize(
    ("command", "shown"),
    tiered(COMMANDS, lambda each: not LONG.match(each[0]), lambda each: each[0]),
)
def test_a_command_prints_what_is_claimed(command, shown):
    # What is shown may leave out the rest.
    done = CliRunner().invoke(app, shlex.split(command))
    assert done.exit_code == ("is refuted" in shown), done.output
    wanted = shown if shown.endswith("...\n") else shown.rstrip("\n") + "...\n"
    same = doctest.OutputChecker().check_output(wanted, done.stdout, FLAGS)
    assert same, f"shown:\n{shown}\nprinted:\n{done.output}"


def test_every_row_has_a_command_that_is_run_or_a_section():
    rows = [line for line in CLAIMS.splitlines() if re.match(r"\| (\d{3}|all)", line)]
    assert {row[2:5] for row in rows} == {"000", "001", "002", "003", "004", "all"}
    run = {command for command, _ in COMMANDS}
    for row in rows:
        named = re.findall(r"`tacit ([^`]+)`", row)
        assert named or "[below]" in row or "benchmarks/audits.py" in row, row
        assert set(named) <= run, row


def test_a_delta_of_bounded_noise_names_its_bound():
    told = re.findall(r"([\d.]+) with b = ln (\d+) / epsilon", CLAIMS)
    assert {bound for _, bound in told} == {"400", "500"}
    for delta, bound in told:
        exact = BoundedNoiseRelease(scale=10.0, bound=math.log(int(bound)) / 0.1).delta(0.1)
        assert float(delta) == pytest.approx(exact, abs=5e-5)
