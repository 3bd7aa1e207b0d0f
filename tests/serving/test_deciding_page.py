"""The pages about deciding for real people answer as shown."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "deciding.md"
PAGES = [PAGE, *sorted((DOCS / "applications").glob("*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(kind, page=PAGE):
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_prompt_answers_as_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "".join(blocks("pycon", page))
    test = doctest.DocTestParser().get_doctest(text, {}, "page", "page", 0)
    assert len(test.examples) >= 8
    report: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    assert not report, "".join(report)


def test_the_program_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (program,) = blocks("python")
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(program, "deciding.md", "exec"), {})
