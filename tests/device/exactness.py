"""What several tests of the device half need: channels, seeded bytes, halved noise."""

from __future__ import annotations

import copy
import importlib.util
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.device import instructions

ROOT = Path(__file__).parents[2]

# One of each channel, by name, at epsilon 1 unless it has none; no default is the lowest reward.
CHANNELS: dict[str, dict[str, Any]] = {
    "randomized-response": instructions.randomized_response(1.0, default=0.5),
    "asymmetric": instructions.asymmetric_response(0.8, 0.6, default=1.0),
    "k-ary": instructions.k_ary(1.0, 4, default=2),
    "cuts": instructions.cuts(1.0, [0.25, 0.5, 0.75], default=0.3),
    "cuts-labels": instructions.cuts(1.0, [0.25, 0.75], labels=[0, 1, 0], default=0.5),
    "unary": instructions.unary(1.0, 3, default=1),
    "unary-none": instructions.unary(1.0, 3, none=True, default=3),
    "unary-optimised": instructions.unary(1.0, 3, optimised=True, default=1),
    "unary-one": instructions.unary(1.0, 1, none=True, default=1),
    "subset": instructions.subset(1.0, 5, size=2, default=3),
    "discrete-laplace": instructions.discrete_laplace(1.0, steps=4, default=0.5),
    "piecewise": instructions.piecewise(1.0, cells=16, default=0.5),
}
FINITE = [name for name in CHANNELS if name != "discrete-laplace"]


def seeded(seed: int) -> Callable[[int], bytes]:
    """Return a source of bytes that repeats itself."""
    return random.Random(seed).randbytes


def words(*values: int) -> Callable[[int], bytes]:
    """Return a source that gives these words and then ends."""
    rest = iter(values)
    return lambda n: next(rest).to_bytes(n, "big")


def halved(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the same channel with half its threshold: another distribution."""
    other = copy.deepcopy(asked)
    answer = other["answer"]
    if answer["kind"] == "noise":
        answer["scale"] //= 2
    elif answer["kind"] in ("window", "subset"):
        answer["weights"][0] //= 2
    else:
        for row in answer["rows"]:
            total = sum(row)
            row[0] //= 2
            row[1] = total - row[0]
    return other


def hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def make_vectors() -> Any:
    """Return the module that writes the vectors."""
    spec = importlib.util.spec_from_file_location("make_vectors", ROOT / "vectors" / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stored_vectors() -> dict[str, list[dict[str, Any]]]:
    """Return the vectors of every file, by its name."""
    return {
        path.name: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "vectors").glob("*.json"))
    }
