"""The page about feedback graphs says what really happens."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from tacit.compiled import INTERPRETED

PAGE = Path(__file__).parents[2] / "docs" / "graph-feedback.md"


@pytest.mark.skipif(INTERPRETED, reason="seconds when compiled, minutes when interpreted")
def test_the_prompt_answers_as_shown():
    blocks = re.findall(r"^```pycon\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    test = doctest.DocTestParser().get_doctest("".join(blocks), {}, PAGE.name, str(PAGE), 0)
    assert len(test.examples) > 20
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(test, out=report.append)
    assert "".join(report) == ""
