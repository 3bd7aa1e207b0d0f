"""The pages about feedback graphs and about environments that change say what really happens."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from tacit.core.kernels import INTERPRETED

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.skipif(INTERPRETED, reason="seconds when compiled, minutes when interpreted")
@pytest.mark.parametrize(("name", "examples"), [("graph-feedback.md", 20), ("changing.md", 7)])
def test_the_prompt_answers_as_shown(name, examples):
    page = DOCS / name
    blocks = re.findall(r"^```pycon\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    test = doctest.DocTestParser().get_doctest("".join(blocks), {}, page.name, str(page), 0)
    assert len(test.examples) > examples
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(test, out=report.append)
    assert "".join(report) == ""
