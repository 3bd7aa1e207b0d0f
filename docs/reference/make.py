"""Write the names of each reference page below it, for readers of the page where the site is not built.

``python docs/reference/make.py`` rewrites the pages; a test checks that they are current.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

PAGES = sorted(Path(__file__).parent.glob("*.md"))
MARK = "<!-- Made by docs/reference/make.py -->"
_ASKED = re.compile(r"^::: (\S+)(?:\n    options: \{members: \[([^\]]*)\])?", re.MULTILINE)


def describe(value: Any) -> str:
    """Return the first sentence about a class, a function or a module; nothing about other values."""
    told = inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value)
    text = (inspect.getdoc(value) or "") if told else ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=[.:])\s", paragraph, maxsplit=1)[0].rstrip(":")


def public_names(module: Any) -> list[str]:
    """Return what a package exports, or what a module defines and does not hide."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = {name for name, value in vars(module).items() if is_defined_in(module, value)}
    return [name for name in own if not name.startswith("_")]


def is_defined_in(module: Any, value: Any) -> bool:
    """Return whether a function or class stands in this module."""
    return callable(value) and getattr(value, "__module__", None) == module.__name__


def write(page: str) -> str:
    """Return a page with the list of its names, whatever list it had."""
    own = page.partition(MARK)[0].rstrip()
    lines = [own, "", MARK, "", "## Names"]
    for name, members in _ASKED.findall(own):
        module = importlib.import_module(name)
        names = members.split(", ") if members else public_names(module)
        lines += ["", f"`{name}`", ""]
        for each in sorted(names):
            told = describe(getattr(module, each))
            lines.append(f"- `{each}`" + (f": {told}" if told else ""))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(write(path.read_text(encoding="utf-8")), encoding="utf-8")
