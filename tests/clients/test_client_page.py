"""The reference: the example of the client runs, and the lists of names are current."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from clients.test_client_audit import service
from clients.wire import Wire

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
MAKE = runpy.run_path(str(REFERENCE / "make.py"))


def test_the_example_of_the_client_runs(tmp_path, monkeypatch, capsys):
    # Finding U5
    text = (REFERENCE / "client.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    with Wire(service) as wire:
        exec(code.replace("http://127.0.0.1:8000", f"http://127.0.0.1:{wire.port}"), names)
        asked = [each.path.rpartition("/")[2] for each in wire.sent]
    assert asked[:2] == ["decisions", "shown"]
    assert "red" in capsys.readouterr().out
    assert "in_time" in names


@pytest.mark.parametrize("page", MAKE["PAGES"], ids=lambda path: path.name)
def test_a_page_of_the_reference_lists_its_names(page):
    # Finding U5
    text = page.read_text(encoding="utf-8")
    assert text == MAKE["write"](text), "run python docs/reference/make.py"
    assert text.count("\n- `") >= 1


def test_a_list_that_is_not_current_is_noticed():
    text = (REFERENCE / "client.md").read_text(encoding="utf-8")
    assert MAKE["write"](text.replace("- `Outbox`", "- `Inbox`")) == text
