"""The page about devices says what really happens."""

from __future__ import annotations

import doctest
import inspect
import json
import re

from device.exactness import ROOT
from tacit.device import instructions

TEXT = (ROOT / "docs" / "device.md").read_text(encoding="utf-8")


def failures(text: str) -> str:
    report: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, {}, "device.md", "device.md", 0)
    assert test.examples
    doctest.DocTestRunner().run(test, out=report.append)
    return "".join(report)


def test_the_prompt_answers_as_shown():
    text = "".join(re.findall(r"^```pycon\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
    assert failures(text) == ""


def test_a_wrong_answer_is_noticed():
    assert "Failed example" in failures(">>> 1 + 1\n3\n")


def test_the_report_shown_is_one():
    (shown,) = re.findall(r"^```json\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert set(json.loads(shown)) == {"v", "id", "value"}


def test_every_builder_is_on_the_page():
    functions = dict(inspect.getmembers(instructions, inspect.isfunction))
    del functions["make_instructions"]
    builders = [n for n, f in functions.items() if f.__annotations__["return"] == "Instructions"]
    assert len(builders) >= 9
    for name in builders:
        assert f"| `{name}` |" in TEXT
