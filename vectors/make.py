"""Write the test vectors: what every implementation of the device half must reproduce.

Run it from anywhere: ``python vectors/make.py``. The random bytes come from SHA-256 of a counter,
so that it always writes the same files; a test holds them against the code.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.device import Channel, Reporter, instructions

FOLDER = Path(__file__).parent
HIGHEST = "ff" * 7
LOWEST = "00" * 7


class Stream:
    """Random bytes that are written down: first those given, then SHA-256 of a counter."""

    def __init__(self, name: str, first: str = "") -> None:
        self.name, self.first, self.used, self.counter = name, bytes.fromhex(first), b"", 0

    def __call__(self, n: int) -> bytes:
        """Return the next n bytes."""
        drawn, self.first = self.first[:n], self.first[n:]
        if len(drawn) < n:
            word = f"{self.name} {self.counter}".encode()
            drawn, self.counter = hashlib.sha256(word).digest()[:n], self.counter + 1
        self.used += drawn
        return drawn


def vector(about: str, asked: dict[str, Any], reward: Any, name: str, first: str = "") -> Any:
    """Return one vector, with the bytes that its report took."""
    stream = Stream(name, first)
    report = Reporter(asked, id=name, max_epsilon=None, random=stream).report(reward)
    epsilon = Channel(asked).epsilon
    return {
        "about": about,
        "instructions": asked,
        "epsilon": epsilon if math.isfinite(epsilon) else None,
        "random": stream.used.hex(),
        "reward": reward,
        "report": report,
    }


UNUSABLE = [None, "0.75", [1], {"reward": 1}]
# JSON has no infinite number; a reward of 1e300 is finite and clipped like any other.
NUMBERS = [0, 1, 0.5, 0.3, 2 / 3, 1e-9, 5e-324, -0.0, -3, 7.5, 1e300, True, False]
SYMBOLS = [0, 1, 2, 3, 4, 17, -1, 1.5, 2.25]
NEAR = [0.25, math.nextafter(0.25, 1), 0.5, 0.75, math.nextafter(0.75, 1), -1e300, 1e300, 0]

SMALL = {"v": 1, "trust": "local", "default": 0}
BIT = {"low": 0, "high": 1, "levels": 2}
COIN = {"kind": "window", "cells": 2, "width": 1, "weights": [3, 1]}


def channels() -> dict[str, tuple[list[dict[str, Any]], list[Any]]]:
    """Return, for each file, its instructions and its rewards."""
    made = instructions
    return {
        "randomized-response": (
            [
                made.randomized_response(1.0),
                made.randomized_response(1e-9),
                made.randomized_response(30.0),
                made.randomized_response(math.log(3), low=-2, high=5, default=1.5),
            ],
            NUMBERS,
        ),
        "asymmetric": (
            [made.asymmetric_response(0.9, 0.6), made.asymmetric_response(0.2, 0.3, default=1)],
            NUMBERS,
        ),
        "k-ary": ([made.k_ary(1.0, 2), made.k_ary(2.0, 5, default=4), made.k_ary(8, 50)], SYMBOLS),
        "cuts": (
            [
                made.cuts(1.0, [0.25, 0.75], labels=[0, 1, 0], default=0.5),
                made.cuts(2.0, [0.25, 0.5, 0.75]),
                made.cuts(0.5, [0.5], labels=[1, 0], default=-7),
            ],
            NEAR,
        ),
        "unary": (
            [
                made.unary(1.0, 4),
                made.unary(2.0, 4, none=True, optimised=True, default=4),
                made.unary(1.0, 1, none=True),
            ],
            SYMBOLS,
        ),
        "subset": ([made.subset(1.0, 5), made.subset(0.1, 9), made.subset(3.0, 4)], SYMBOLS),
        "discrete-laplace": (
            [
                made.discrete_laplace(1.0),
                made.discrete_laplace(1e-9),
                made.discrete_laplace(30.0),
                made.discrete_laplace(2.0, low=-1, high=1, default=0, steps=7),
            ],
            NUMBERS,
        ),
        "piecewise": (
            [
                made.piecewise(1.0),
                made.piecewise(30.0),
                made.piecewise(0.5, low=-1, high=1, default=0, cells=10),
            ],
            NUMBERS,
        ),
        "identity": ([made.identity(), made.identity(low=-2, high=5, default=0.1)], NUMBERS),
    }


def refused() -> list[Any]:
    """Return instructions that no device follows."""
    good = SMALL | {"question": BIT, "answer": COIN}
    cuts = {"cuts": [0.25, 0.75], "labels": [0, 1, 0]}
    table = {"kind": "table", "rows": [[3, 1], [1, 3]]}
    unary = {"kind": "unary", "bits": 2, "rows": [[3, 1], [1, 3]]}
    subset = {"kind": "subset", "cells": 2, "width": 1, "weights": [3, 1]}

    def answer(**changed: Any) -> dict[str, Any]:
        return good | {"answer": COIN | changed}

    def question(**changed: Any) -> dict[str, Any]:
        return good | {"question": BIT | changed}

    def cut(**changed: Any) -> dict[str, Any]:
        return good | {"question": cuts | changed}

    whole = [
        ("not an object", [good]),
        ("a missing field", {key: value for key, value in good.items() if key != "default"}),
        ("a declared epsilon", good | {"epsilon": 1}),
        ("another version", good | {"v": 2}),
        ("a version that is a truth value", good | {"v": True}),
        ("an unknown trust", good | {"trust": "shuffler"}),
        ("central trust with a local answer", good | {"trust": "central"}),
        ("the reward itself under local trust",
         good | {"question": {"low": 0, "high": 1}, "answer": {"kind": "identity"}}),
        ("levels with the reward itself",
         good | {"trust": "central", "answer": {"kind": "identity"}}),
        ("a default above the range", good | {"default": 1.5}),
        ("a default below the range", good | {"default": -1}),
        ("a default that is missing", good | {"default": None}),
        ("a default that is text", good | {"default": "0"}),
        ("a default that is a truth value", good | {"default": False}),
        ("a question that is missing", good | {"question": None}),
        ("an answer that is missing", good | {"answer": None}),
        ("an unknown kind", answer(kind="laplace")),
        ("a kind that is a list", answer(kind=["window"])),
        ("an unknown field of the answer", answer(epsilon=1)),
        ("an unknown field of the question", question(step=1)),
        ("an empty range", question(high=0)),
        ("a reversed range", question(low=1, high=0)),
        ("a range beyond 2^53", question(high=1e16)),
        ("one level", question(levels=1)),
        ("a broken number of levels", question(levels=2.5)),
        ("too many levels", question(levels=65538)),
        ("more levels than symbols", question(levels=3)),
        ("a weight of 0 inside", answer(weights=[0, 1])),
        ("a weight of 0 outside: infinite epsilon", answer(weights=[1, 0])),
        ("a negative weight", answer(weights=[3, -1])),
        ("a broken weight", answer(weights=[3, 0.5])),
        ("a weight that is a truth value", answer(weights=[3, True])),
        ("a weight that is text", answer(weights=["3", 1])),
        ("one weight", answer(weights=[3])),
        ("three weights", answer(weights=[3, 1, 1])),
        ("a weight of 2^53", answer(weights=[2**53, 2**52])),
        ("weights that reach 2^53", answer(weights=[2**52, 2**52])),
        ("weights beyond 2^53, by less than a double can tell", answer(weights=[2**52, 2**52 + 1])),
        ("an epsilon of 36", answer(weights=[4311231547115195, 1])),
        ("a width of 0", answer(width=0)),
        ("a window of all cells", answer(width=2)),
        ("one cell", answer(cells=1)),
        ("cells that do not fit the levels", answer(cells=3)),
        ("cuts that fall", cut(cuts=[0.75, 0.25])),
        ("cuts that are equal", cut(cuts=[0.25, 0.25])),
        ("cuts with a gap", cut(cuts=[0.25, None])),
        ("cuts beyond 2^53", cut(cuts=[0.25, 1e17])),
        ("no cuts", cut(cuts=[], labels=[0])),
        ("too few labels", cut(labels=[0, 1])),
        ("too many labels", cut(labels=[0, 1, 0, 1])),
        ("one label for all bins", cut(labels=[0, 0, 0])),
        ("a label left out", cut(labels=[0, 2, 0])),
        ("a negative label", cut(labels=[0, -1, 1])),
        ("a label that is text", cut(labels=[0, "1", 0])),
        ("more labels than cells", cut(labels=[0, 1, 2])),
        ("cuts and levels at once", question(**cuts)),
        ("rows of two sums", good | {"answer": table | {"rows": [[3, 1], [1, 4]]}}),
        ("rows of two lengths", good | {"answer": table | {"rows": [[3, 1], [2, 1, 1]]}}),
        ("rows of one column", good | {"answer": table | {"rows": [[4], [4]]}}),
        ("one row too few", good | {"answer": table | {"rows": [[3, 1]]}}),
        ("one row too many", good | {"answer": table | {"rows": [[3, 1], [1, 3], [2, 2]]}}),
        ("a row with a 0", good | {"answer": table | {"rows": [[4, 0], [1, 3]]}}),
        ("rows that reach 2^53", good | {"answer": table | {"rows": [[2**52, 2**52]] * 2}}),
        ("a row that is no list", good | {"answer": table | {"rows": [3, 1]}}),
        ("more bits than symbols", good | {"answer": unary | {"bits": 3}}),
        ("no bits", good | {"answer": unary | {"bits": 0}}),
        ("rows of three weights for bits",
         good | {"answer": unary | {"rows": [[3, 1, 1], [1, 3, 1]]}}),
        ("a subset of all symbols", good | {"answer": subset | {"width": 2}}),
        ("a subset of too many symbols", good | {"answer": subset | {"cells": 3}}),
        ("noise of scale 0", good | {"answer": {"kind": "noise", "scale": 0}}),
        ("noise of a broken scale", good | {"answer": {"kind": "noise", "scale": 1.5}}),
        ("noise beyond the exact integers", good | {"answer": {"kind": "noise", "scale": 2**47}}),
        ("noise of epsilon 31",
         question(levels=32) | {"answer": {"kind": "noise", "scale": 1}}),
    ]  # fmt: skip
    return [{"about": about, "instructions": asked, "refused": True} for about, asked in whole]


def edges() -> list[Any]:
    """Return vectors whose random bytes are chosen: ends of intervals and rejected words."""

    def word(value: int) -> str:
        return value.to_bytes(7, "big").hex()

    coin = SMALL | {"question": BIT, "answer": COIN}
    third = SMALL | {
        "question": {"low": 0, "high": 2, "levels": 3},
        "answer": {"kind": "window", "cells": 3, "width": 1, "weights": [1, 1]},
    }
    noise = SMALL | {"question": BIT, "answer": {"kind": "noise", "scale": 2}}
    half = 2**52
    return [
        vector(about, asked, reward, f"edges-{i}", first)
        for i, (about, asked, reward, first) in enumerate(
            [
                ("the largest word that rounds up", coin, 0.5, word(half - 1) + LOWEST),
                ("the smallest word that rounds down", coin, 0.5, word(half) + LOWEST),
                ("0 is never rounded up", coin, 0, LOWEST + LOWEST),
                ("1 is never rounded up further", coin, 1, LOWEST + LOWEST),
                ("the smallest number may be rounded up", coin, 5e-324, LOWEST + LOWEST),
                ("the last word that keeps", coin, 1, LOWEST + word(2)),
                ("the first word that flips", coin, 1, LOWEST + word(3)),
                ("the three highest bits are dropped", coin, 1, "e0" + "00" * 6 + "e0" + "00" * 6),
                ("the highest words", coin, 1, HIGHEST + HIGHEST),
                ("2^53 = 2 modulo 3, so the two highest words are drawn again", third, 1,
                 LOWEST + HIGHEST + word(2**53 - 2) + word(2**53 - 3)),
                ("a negative zero is drawn again", noise, 0, LOWEST * 2 + word(1) * 3),
            ]
        )
    ]  # fmt: skip


def files() -> dict[str, list[Any]]:
    """Return the content of every file by its name."""
    out: dict[str, list[Any]] = {"edges.json": edges(), "refused.json": refused()}
    for name, (asked, rewards) in channels().items():
        out[f"{name}.json"] = [
            vector(f"{name} {i}, reward {json.dumps(reward)}", one, reward, f"{name}-{i}-{j}")
            for i, one in enumerate(asked)
            for j, reward in enumerate([*rewards, *UNUSABLE])
        ]
    return out


def text(vectors: list[Any]) -> str:
    """Return a file's text: a line for each vector."""
    lines = (json.dumps(one, separators=(", ", ": ")) for one in vectors)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main(write: Callable[[Path, str], Any] = Path.write_text) -> None:
    """Write every file."""
    for name, vectors in files().items():
        write(FOLDER / name, text(vectors))


if __name__ == "__main__":
    main()
