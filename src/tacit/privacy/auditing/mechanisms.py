"""Auditing a mechanism by name, on the neighbouring values that matter for it."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.checks import require
from tacit.parameters import described
from tacit.privacy import mechanisms
from tacit.privacy.auditing.search import Neighbours, SearchResult, search

__all__ = [
    "audit_mechanism",
    "mechanism_kinds",
    "mechanism_named",
    "mechanism_neighbours",
    "mechanism_rows",
]

_LEAST: dict[str, Any] = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "dimension": 1,
    "options": 2,
    "low": 0.0,
    "high": 1.0,
    "bound": math.log(400),
}


def mechanism_kinds() -> dict[str, type[mechanisms.Mechanism]]:
    """Return every mechanism by the name a command line can type, such as ``bounded-noise``."""
    found = {}
    for public in mechanisms.__all__:
        kind = getattr(mechanisms, public)
        if kind is not mechanisms.Mechanism:
            name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", public).lower()
            found[name] = kind
    return found


def mechanism_named(name: str, parameters: Mapping[str, Any]) -> Any:
    """Return the mechanism called `name` with `parameters`, or say which ones there are."""
    kinds = mechanism_kinds()
    if name not in kinds:
        raise ValueError(f"no mechanism is called {name!r}; there are {', '.join(kinds)}")
    return described(kinds[name], name, parameters)


def mechanism_rows() -> list[dict[str, Any]]:
    """Return a row for every mechanism: what it sends, for whom, its variance at epsilon 1.

    Other parameters are the least there are: one coordinate, two options, values in [0, 1], delta
    1e-6, the bound ln 400 of paper 000.
    """
    rows = []
    for name, kind in mechanism_kinds().items():
        known = {field.name for field in dataclasses.fields(kind)}
        built = kind(**{key: value for key, value in _LEAST.items() if key in known})
        words = (kind.__doc__ or "").strip().partition("\n")[0].rstrip(".")
        pure = math.isfinite(built.release.epsilon)
        rows.append(
            {
                "name": name,
                "sends": words,
                "trust": "local or central" if "sensitivity" in known else "local",
                "guarantee": "pure" if pure else "needs a delta",
                "variance at epsilon 1": built.variance,
                "secure": "yes" if built.secure else "no",
            }
        )
    return rows


def mechanism_neighbours(mechanism: mechanisms.Mechanism) -> list[Neighbours]:
    """Return pairs of values that differ by the mechanism's sensitivity, worst ones among them."""
    if isinstance(mechanism, mechanisms.RandomizedResponse):
        return [Neighbours(0.0, 1.0, "0 against 1")]
    if isinstance(mechanism, mechanisms.Piecewise):
        return [Neighbours(-1.0, 1.0, "-1 against 1"), Neighbours(0.0, 1.0, "0 against 1")]
    if isinstance(mechanism, mechanisms.UnaryEncoding):
        one = np.eye(mechanism.options)
        pairs = [Neighbours(one[0], np.zeros(mechanism.options), "an option against none")]
        if mechanism.options > 1:
            pairs.append(Neighbours(one[0], one[1], "an option against another"))
        return pairs
    described: Any = mechanism
    sensitivity, d = described.sensitivity, getattr(described, "dimension", 1)
    zero, axis = np.zeros(d), np.eye(1, d)[0] * sensitivity
    pairs = [Neighbours(zero, axis, f"0 against {sensitivity:g} in one coordinate")]
    if d > 1 and isinstance(mechanism, mechanisms.Laplace):
        dense = np.full(d, sensitivity / d)
        pairs.append(Neighbours(zero, dense, "0 against a vector of equal coordinates"))
    elif d > 1:
        dense = np.full(d, sensitivity / np.sqrt(d))
        pairs.append(Neighbours(zero, dense, "0 against a vector of equal coordinates"))
    return pairs


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
    mechanism = mechanism_named(name, parameters)
    claimed = mechanism.epsilon if epsilon is None else epsilon
    allowed = getattr(mechanism, "delta", 0.0) if epsilon is None else 0.0
    rule = "False, because its noise has no exact sampler"
    require(mechanism, "secure", rule, mechanism.secure or not secure, secure)

    def run(value: Any, n: int, key: int) -> Any:
        return mechanism.run(value, n, None if secure else key)

    return search(
        run,
        mechanism_neighbours(mechanism),
        epsilon=claimed,
        delta=allowed if delta is None else delta,
        runs=runs,
        alpha=alpha,
        seed=seed,
        short=min(4_000, runs),
        low_bits=secure,
    )
