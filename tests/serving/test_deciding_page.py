"""The page about deciding for real people answers as shown."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "deciding.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_the_prompt_answers_as_shown():
    test = doctest.DocTestParser().get_doctest("".join(blocks("pycon")), {}, "page", "page", 0)
    assert len(test.examples) > 20
    report: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    assert not report, "".join(report)


def test_the_program_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (program,) = blocks("python")
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(program, "deciding.md", "exec"), {})
