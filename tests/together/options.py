"""What can be switched on at the same time: axes, what is refused by design, and a set of all pairs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

Case = dict[str, Any]

GRAPHS = ("dp-imed", "dp-klucb")
VISITS = ("private-contexts", "fed-ucb")
CONTEXTS = ("linucb", *VISITS)
LOCAL = ("klucb-cf", "linucb")
LEARNERS = ("memory", "store")
CLIENTS = ("client-memory", "client-file", "node")

AXES: dict[str, tuple[Any, ...]] = {
    "front": (*LEARNERS, "sqlite", "postgres", *CLIENTS),
    "policy": ("klucb-cf", "dp-imed", "dp-klucb", "adap-klucb", *CONTEXTS),
    "unit": ("reward", "round"),
    "graph": ("none", "star", "path"),
    "mode": ("learn", "frozen", "shadow", "off"),
    "modes": ("stay", "change"),
    "explore": (0.0, 0.3),
    "eligible": ("all", "some"),
    "options": ("stay", "change"),
    "budget": ("none", "lifetime", "day", "later"),
    "side": ("own", "shown"),
    "time": ("at once", "due"),
    "again": ("none", "restart", "crash", "save", "restore"),
    "noise": ("readable", "real"),
}


def is_possible(case: Case) -> bool:
    """Return whether nothing in a case, whole or in part, is refused by design."""
    front, policy, graph = case.get("front"), case.get("policy"), case.get("graph", "none")
    if (
        policy is not None
        and policy not in GRAPHS
        and (graph != "none" or "round" in case.values())
    ):
        return False
    side = case.get("side") == "shown"
    if side and (case.get("graph") == "none" or front in CLIENTS):
        return False  # a client's device knows one reward
    if case.get("options") == "change" and (graph != "none" or policy in CONTEXTS):
        return (
            False  # nobody says whom a new option shows; options that come as contexts come and go
        )
    if case.get("budget") == "later" and front in LEARNERS:
        return False  # a learner has its budget from the start
    if case.get("budget") in ("lifetime", "day") and policy in VISITS:
        return (
            False  # it counts epsilon, and a visit has a delta; later it is asked for, and refused
        )
    if case.get("time") == "at once" and front is not None and front not in LEARNERS:
        return False
    again = case.get("again")
    if again == "save" and front not in (None, "memory"):
        return False
    if again == "restore" and front in CLIENTS:
        return False  # a device does not know of it; the service is put back without clients
    if policy in CONTEXTS and case.get("mode") == "shadow":
        return (
            False  # options come with each decision, so that there is no baseline to record beside
        )
    return not (again in ("restart", "crash", "restore") and front == "memory")


def all_pairs() -> set[frozenset[tuple[str, Any]]]:
    """Return every pair of values of two axes."""
    return {
        frozenset(((a, x), (b, y)))
        for a, b in itertools.combinations(AXES, 2)
        for x in AXES[a]
        for y in AXES[b]
    }


def pairs_of(case: Case) -> set[frozenset[tuple[str, Any]]]:
    """Return the pairs that a case covers."""
    return {frozenset(pair) for pair in itertools.combinations(case.items(), 2)}


def complete(part: Case, rng: random.Random, tries: int = 60) -> Case | None:
    """Return a possible case that contains `part`, None if none is found."""
    for _ in range(tries):
        case = dict(part)
        for axis in rng.sample(list(AXES), len(AXES)):
            if axis not in case:
                fits = [value for value in AXES[axis] if is_possible({**case, axis: value})]
                if not fits:
                    break
                case[axis] = rng.choice(fits)
        if len(case) == len(AXES) and is_possible(case):
            return {axis: case[axis] for axis in AXES}
    return None


def pairwise(seed: int = 0) -> Iterator[Case]:
    """Yield cases that cover every pair which is not refused by design; each the best of a few."""
    rng = random.Random(seed)
    left = all_pairs()
    while left:
        wanted = dict(min(left, key=lambda pair: sorted(map(str, pair))))
        found = [complete(wanted, rng) for _ in range(12)]
        cases = [case for case in found if case is not None]
        if not cases:
            left.discard(frozenset(wanted.items()))
            continue
        best = max(cases, key=lambda case: len(pairs_of(case) & left))
        left -= pairs_of(best)
        yield best


def sample(n: int, seed: int, **fixed: Any) -> list[Case]:
    """Return possible cases drawn at random."""
    rng = random.Random(seed)
    found: list[Case] = []
    while len(found) < n:
        case = complete(fixed, rng)
        assert case is not None, f"no case has {fixed}"
        found.append(case)
    return found
