"""Auditing a mechanism by name, on the neighbouring values that matter for it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from tacit.core.constraints import require
from tacit.core.specs import build_dataclass
from tacit.privacy import mechanisms
from tacit.privacy.auditing.search import SearchResult, search

_LEAST: dict[str, Any] = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "dimension": 1,
    "options": 2,
    "low": 0.0,
    "high": 1.0,
    "bound": math.log(400),
    "horizon": 1,
    "keep_one": 0.75,
    "keep_zero": 0.75,
    "reports": 1000,
}


def mechanism_kinds() -> dict[str, type[mechanisms.Mechanism]]:
    """Return every mechanism by the name a command line can type, such as ``bounded-noise``."""
    return mechanisms.registry()


def build_mechanism(name: str, parameters: Mapping[str, Any]) -> Any:
    """Return the mechanism called `name` with `parameters`, or say which ones there are."""
    kinds = mechanism_kinds()
    if name not in kinds:
        raise ValueError(f"no mechanism is called {name!r}; there are {', '.join(kinds)}")
    return build_dataclass(kinds[name], name, parameters)


def mechanism_rows() -> list[dict[str, Any]]:
    """Return a row for every mechanism: what it sends, for whom, its variance at epsilon 1.

    Other parameters are the least there are: one coordinate, two options, values in [0, 1], delta
    1e-6, the bound ln 400 of paper 000; a block of 1,000 reports.
    """
    rows = []
    for name, kind in mechanism_kinds().items():
        known = {field.name for field in dataclasses.fields(kind) if field.init}
        needed = {f.name for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING}
        built = kind(**{key: value for key, value in _LEAST.items() if key in needed})
        words = (kind.__doc__ or "").strip().partition("\n")[0].rstrip(".")
        pure = math.isfinite(built.release.epsilon)
        rows.append(
            {
                "name": name,
                "sends": words,
                "trust": _trust_of(kind, known),
                "guarantee": "pure" if pure else "needs a delta",
                "variance at epsilon 1": built.variance,
                "secure": "yes" if built.secure else "no",
            }
        )
    return rows


def _trust_of(kind: type[mechanisms.Mechanism], known: set[str]) -> str:
    trust = str(kind.scope["trust"])
    return "local or central" if trust == "local" and "sensitivity" in known else trust


def audit_mechanism(
    name: str,
    parameters: Mapping[str, Any],
    *,
    runs: int = 1_000_000,
    epsilon: float | None = None,
    delta: float | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    secure: bool = False,
) -> SearchResult:
    """Try to refute the epsilon a mechanism was asked for, or another claim about it.

    With `secure` its exact noise is audited, lowest bits included, and the audit is not repeatable.

    Examples
    --------
    >>> found = audit_mechanism("bounded-noise", {"epsilon": 0.1, "bound": 60.0}, runs=100_000)
    >>> found.result.verdict
    'refuted'
    """
    mechanism = build_mechanism(name, parameters)
    claimed = mechanism.epsilon if epsilon is None else epsilon
    allowed = getattr(mechanism, "delta", 0.0) if epsilon is None else 0.0
    rule = "False, because its noise has no exact sampler"
    require(mechanism, "secure", rule, mechanism.secure or not secure, secure)

    def run(value: Any, n: int, key: int) -> Any:
        return mechanism.run(value, n, None if secure else key)

    return search(
        run,
        mechanism.worst_pairs(),
        epsilon=claimed,
        delta=allowed if delta is None else delta,
        runs=runs,
        alpha=alpha,
        seed=seed,
        short=min(4_000, runs),
        low_bits=secure,
    )
