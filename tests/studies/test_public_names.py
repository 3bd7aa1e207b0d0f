"""The studies use Tacit as anybody would: by its public names, and by nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from test_public_api import PUBLIC

STUDIES = Path(__file__).parents[2] / "studies" / "src" / "tacit_studies"
FILES = sorted(STUDIES.rglob("*.py"))


def hidden_names(source: str) -> list[str]:
    """Return what a module takes from Tacit that is not public."""
    taken = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tacit":
            taken += [(node.module, each.name) for each in node.names]
        elif isinstance(node, ast.Import):
            taken += [(each.name, "") for each in node.names if each.name.startswith("tacit.")]
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "tacit":
            taken.append(("tacit", node.attr))
    return [
        f"{module}.{name}" for module, name in taken if name not in PUBLIC.get(module, "").split()
    ]


def test_there_are_studies():
    assert len(FILES) > 60


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(STUDIES)))
def test_a_study_uses_public_names(file):
    assert hidden_names(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "from tacit.core.tapes import seeded_tape",
        "from tacit.arms import Table",
        "import tacit.core.registry",
        "import tacit\ntacit.registry.build()",
        "def later():\n    from tacit.arms.tables import edit_rewards",
    ],
)
def test_a_hidden_name_is_noticed(source):
    assert len(hidden_names(source)) == 1
