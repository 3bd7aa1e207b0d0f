"""The pages on the audit, the ledger and the papers' claims say what really happens."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


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
