"""From a description to an experiment: what can be made of it, and what is refused.

A description comes from elsewhere, so it names no module and no file, and is made once, on trial, before
anything is kept of it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from tacit.checks import require
from tacit.deciding import Decider, decider_for, require_exact
from tacit.networks import Graph
from tacit.policy import AnyPolicy
from tacit.registry import build, policies, policy_named
from tacit.service.messages import ExperimentRequest
from tacit.serving.core import RefusedError, Terms
from tacit.serving.spending import Allowance

__all__ = [
    "checked",
    "decider_of",
    "graph_of",
    "named_by",
    "places",
    "policy_of",
    "pseudonym",
    "require_new",
    "terms_of",
]

_HIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""What shows nothing, ends a line or turns the direction of what follows."""
_MOST_BYTES = 1 << 28
_MOST = 2**53


def places(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return the numbers of options by their names."""
    known = {name: i for i, name in enumerate(names)}
    missing = next((name for name in wanted if name not in known), None)
    require("experiment", "options", "by their names", missing is None, missing)
    return [known[name] for name in wanted]


def pseudonym(experiment: str, person: str, secret: bytes) -> str:
    """Return what the store calls a person."""
    name = f"{experiment}\0{same_name(person)}".encode()
    return hashlib.blake2b(name, key=secret, digest_size=16).hexdigest()


def same_name(name: str) -> str:
    """Return what all ways to write a name have in common: letters with their accents in one."""
    return unicodedata.normalize("NFC", name)


def require_new(kind: str, names: Sequence[str], known: Iterable[str] = ()) -> None:
    """Refuse names that are not what they look like, or look like one in use."""
    used, mine = set(map(same_name, known)), set[str]()
    for name in names:
        seen = not _HIDDEN.search(name) and name == name.strip()
        require("experiment", kind, "of characters that can be seen, not spaced out", seen, name)
        if same_name(name) in used:
            raise RefusedError("conflict", f"{kind} {name!r}: expected a new name, got one in use")
        twin = same_name(name) in mine
        require("experiment", f"{kind} names", "all different", not twin, name)
        mine.add(same_name(name))


def named_by(request: ExperimentRequest, secret: bytes) -> ExperimentRequest:
    """Return a description without names of people, as the store keeps it."""
    people, edges = request.people, request.edges
    called = {name: pseudonym(request.name, name, secret) for name in people or ()}
    return msgspec.structs.replace(
        request,
        people=None if people is None else list(called.values()),
        edges=None if edges is None else [(called[u], called[v]) for u, v in edges],
    )


def decider_of(policy: AnyPolicy, request: ExperimentRequest) -> Decider:
    """Return the decider of an experiment, with a state that has seen nothing."""
    people, edges, given = request.people, request.edges, {}
    if edges is not None:
        given["graph"] = graph_of(people or (), edges)
    decider = decider_for(policy, explore=request.explore, **given)
    mixed = decider.trust != "shuffler"
    rule = "one that needs no shuffler: operators and exports of a service see single reports"
    require("experiment", "policy", rule, mixed, policy.name)
    n = len(people or ())
    rule = "not given with this policy" if decider.n_people is None else f"{decider.n_people} names"
    require("experiment", "people", rule, n == (decider.n_people or 0), n)
    idle = edges is not None and decider.joined is None
    require("experiment", "edges", "not given, because it joins nobody", not idle, edges)
    why = decider.not_stored
    require("experiment", "policy", f"one that can be kept ({why})", not why, policy.name)
    return decider


def graph_of(people: Sequence[str], edges: Sequence[tuple[str, str]]) -> Graph:
    """Return who is joined to whom."""
    place = {name: i for i, name in enumerate(people)}
    require("experiment", "people", "all different", len(place) == len(people), len(people))
    unknown = next((name for edge in edges for name in edge if name not in place), None)
    require("experiment", "edges", "between its people", unknown is None, unknown)
    pairs = np.array([(place[u], place[v]) for u, v in edges], np.int64).reshape(-1, 2)
    return Graph.from_edges(pairs, n_nodes=len(people), duplicates="merge")


def checked(request: ExperimentRequest) -> Decider:
    """Return the decider of an experiment, or raise ``ValueError`` if it cannot be made."""
    try:
        return _tried(request)
    except (MemoryError, OverflowError):
        raise ValueError("experiment: expected parameters of a size that can be kept") from None


def _tried(request: ExperimentRequest) -> Decider:
    policy = policy_of(request)
    require_new("option", request.options or ())
    require_new("person", request.people or ())
    terms = terms_of(request)
    decider = decider_of(policy, request)
    require_exact(decider)
    small = decider.nbytes <= _MOST_BYTES
    require("experiment", "policy", f"of at most {_MOST_BYTES:,} bytes", small, decider.nbytes)
    policy.guarantee(1)
    if decider.n_options is not None:
        for option in range(decider.n_options):
            decider.instructions(option, None, terms.default)
    if terms.allowances:
        finite = decider.epsilon < float("inf")
        require("experiment", "budget", "only where rewards are protected", finite, request.budget)
        pure = policy.guarantee(1).delta == 0
        require(
            "experiment", "budget", "only where delta is 0: it counts epsilon", pure, policy.name
        )
    return decider


def policy_of(request: ExperimentRequest) -> AnyPolicy:
    """Return the policy that a description asks for."""
    written = dict(request.policy)
    name = written.pop("name", None)
    require("experiment", "policy", "a table with a name", isinstance(name, str), request.policy)
    options, people = request.options, request.people
    _require_harmless(written, max(1000, len(options or ())))
    known = sorted(policies())
    require("experiment", "policy", f"one of {', '.join(known)}", name in known, name)
    sizes = {"n_arms": options, "n_users": people}
    public = {name: len(given) for name, given in sizes.items() if given is not None}
    for size, n in public.items():
        same = written.get(size, n) == n
        require("experiment", size, f"{n}, as many as are given", same, written.get(size))
    if options is not None:
        require(
            "experiment", "options", "all different", len(set(options)) == len(options), options
        )
    return build(policy_named(name), public, written)


def _require_harmless(written: Any, most: int, name: str = "policy", level: int = 0) -> None:
    """Refuse what would import a module, read a file or fill the memory."""
    if isinstance(written, str):
        word = name != "graph" and not set(written) & set(":/\\")
        require("experiment", name, "not the name of a file or module", word, written)
    elif isinstance(written, int):
        limit = _MOST if level <= 1 else most
        require("experiment", name, f"a number up to {limit:,}", abs(written) <= limit, "more")
    elif isinstance(written, Mapping):
        for key, value in written.items():
            _require_harmless(value, most, key, level + 1)
    elif isinstance(written, list):
        for value in written:
            _require_harmless(value, most, name, level)


def terms_of(request: ExperimentRequest) -> Terms:
    """Return what is fixed for an experiment beside its policy."""
    options = request.options or []
    baseline = 0
    if request.baseline is not None:
        baseline = places(options, [request.baseline])[0]
    return Terms(
        report_after=round(request.reward.report_after * 1000),
        grace=round(request.grace * 1000),
        retention=round(request.retention * 1000),
        default=request.reward.default,
        max_open=request.max_open,
        allowances=tuple(
            Allowance(epsilon=most, window=window)
            for window, most in (request.budget or {}).items()
        ),
        mode=request.mode,
        baseline=baseline,
    )
