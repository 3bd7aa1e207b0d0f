"""What an experiment is made from: read from a request or from a store, checked, and written.

A service keeps a request, a learner its arguments by value. Both are read here, so that each opens what the
other made. A request comes from elsewhere: it names no module and no file, and is made once, on trial, before
anything is kept of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tacit.core.constraints import require
from tacit.core.decider import Decider, decider_for, require_exact
from tacit.core.json_codec import plain
from tacit.core.policy import AnyPolicy
from tacit.core.registry import build, policies, policy_named
from tacit.graphs import Graph
from tacit.serving.core import Allowance, ExperimentConfig, RefusedError, require_mode
from tacit.serving.core.budget import read_allowances, require_budget
from tacit.serving.storage import StoredExperiment
from tacit.serving.storage.pseudonyms import same_name

FORMAT = 2
"""Of what a store keeps of a learner; the first, of version 0.2, had no people and older pseudonyms."""
_HIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""What shows nothing, ends a line or turns the direction of what follows."""
_REQUEST: dict[str, Any] = {
    "options": None,
    "reward": {},
    "budget": None,
    "mode": "learn",
    "explore": 0.0,
    "baseline": None,
    "grace": 60.0,
    "retention": 2_592_000.0,
    "max_open": 100_000,
    "people": None,
    "edges": None,
}
_REWARD = {"kind": "bounded", "default": 0.0, "report_after": 60.0}
"""What holds where a request says nothing."""
_MOST_BYTES = 1 << 28
_MOST = 2**53


@dataclass(frozen=True, kw_only=True)
class Description:
    """An experiment before anything happened in it."""

    name: str
    policy: AnyPolicy
    config: ExperimentConfig
    choices: bytes
    """The key of its choices, which is logged."""
    explore: float = 0.0
    options: Sequence[str] = ()
    people: Sequence[str] = ()
    """Pseudonyms."""
    join: Callable[[], Mapping[str, Any]] = dict
    """Makes what the setting needs beside the policy: who is joined to whom, which may be much."""
    old_names: bool = False
    """Whether a learner of version 0.2 made pseudonyms."""

    def make_decider(self) -> Decider:
        """Return the decider, with a state that has seen nothing."""
        return decider_for(self.policy, explore=self.explore, **self.join())

    def write(self) -> dict[str, Any]:
        """Return what a store keeps of a learner."""
        return {
            "format": FORMAT,
            "policy": by_value(self.policy),
            "explore": self.explore,
            "terms": plain(self.config),
            "options": list(self.options) or None,
            "people": list(self.people),
            "joined": self.make_decider().joined,
            "choices": self.choices.hex(),
        }


def read_description(
    name: str, kept: StoredExperiment, policy: AnyPolicy | None = None
) -> Description:
    """Return what an experiment in a store was made from.

    Parameters
    ----------
    name : str
    kept : StoredExperiment
    policy : Policy, optional
        Where it is known; it need not be one that has a name then.
    """
    stored = kept.description
    choices = bytes.fromhex(stored["choices"])
    if "request" in stored:
        return read_request(stored["request"], choices)
    if policy is None:
        policy = _read_policy(name, stored["policy"])
    terms, people, joined = dict(stored["terms"]), stored.get("people"), stored.get("joined")
    n = getattr(policy, "n_users", 0)
    if people is None and n:
        require(name, "people", "in a snapshot, which 0.2 had not made", bool(kept.snapshot), None)
        about: Mapping[str, Any] = kept.snapshot.about if kept.snapshot else {}
        people, joined = about["people"][:n], about["joined"]
        joined = joined and [edge for edge in joined if max(edge[:2]) < n]
    terms["allowances"] = tuple(Allowance(**each) for each in terms["allowances"])
    return Description(
        name=name,
        policy=policy,
        config=ExperimentConfig(**terms),
        choices=choices,
        explore=stored["explore"],
        options=stored["options"] or (),
        people=people or (),
        join=partial(_read_joined, policy, joined),
        old_names=stored["format"] < FORMAT,
    )


def read_request(request: Mapping[str, Any], choices: bytes = b"") -> Description:
    """Return what a request asks for, or raise ``ValueError``."""
    request = {**_REQUEST, **request}
    policy = _policy_of(request)
    options, people, edges = request["options"] or [], request["people"], request["edges"]
    reward, baseline = {**_REWARD, **request["reward"]}, request["baseline"]
    config = ExperimentConfig(
        report_after=round(reward["report_after"] * 1000),
        grace=round(request["grace"] * 1000),
        retention=round(request["retention"] * 1000),
        default=reward["default"],
        max_open=request["max_open"],
        allowances=read_allowances(request["budget"] or {}),
        mode=request["mode"],
        baseline=0 if baseline is None else places(options, [baseline])[0],
    )
    return Description(
        name=request["name"],
        policy=policy,
        config=config,
        choices=choices,
        explore=request["explore"],
        options=options,
        people=people or (),
        join=dict if edges is None else lambda: {"graph": graph_of(people or (), edges)},
    )


def check_request(request: Mapping[str, Any]) -> Decider:
    """Return the decider of a new experiment, or raise ``ValueError`` if it cannot be made."""
    try:
        return _check(read_request(request))
    except (MemoryError, OverflowError):
        raise ValueError("experiment: expected parameters of a size that can be kept") from None


def _check(wanted: Description) -> Decider:
    policy, config, n = wanted.policy, wanted.config, len(wanted.people)
    require_new("option", wanted.options)
    require_new("person", wanted.people)
    policy.require_size(_MOST_BYTES, **wanted.join())
    decider = wanted.make_decider()
    mixed = decider.trust != "shuffler"
    rule = "one that needs no shuffler: operators and exports of a service see single reports"
    require("experiment", "policy", rule, mixed, policy.name)
    rule = "not given with this policy" if decider.n_people is None else f"{decider.n_people} names"
    require("experiment", "people", rule, n == (decider.n_people or 0), n)
    idle = wanted.join is not dict and decider.joined is None
    require("experiment", "edges", "not given, because it joins nobody", not idle, "edges")
    why = decider.not_stored
    require("experiment", "policy", f"one that can be kept ({why})", not why, policy.name)
    require_exact(decider)
    small = decider.nbytes <= _MOST_BYTES
    require("experiment", "policy", f"of at most {_MOST_BYTES:,} bytes", small, decider.nbytes)
    policy.guarantee(1)
    if decider.n_options is not None:
        for option in range(decider.n_options):
            decider.instructions(option, None, config.default)
    require_budget("experiment", decider, config.allowances)
    require_mode(decider, config.mode)
    return decider


def by_value(policy: AnyPolicy) -> dict[str, Any]:
    """Return the class and parameters of a policy, for JSON."""
    kind = type(policy)
    return {"class": f"{kind.__module__}.{kind.__qualname__}", **plain(policy)}


def _read_policy(owner: str, stored: Mapping[str, Any]) -> AnyPolicy:
    """Return the policy of which `by_value` returned this, without importing anything."""
    parameters = {name: value for name, value in stored.items() if name != "class"}
    for kind in policies().values():
        if f"{kind.__module__}.{kind.__qualname__}" == stored["class"]:
            policy = build(kind, {}, parameters)
            if by_value(policy) == stored:
                return policy
    raise ValueError(
        f"{owner} cannot be opened without its policy, because {stored['class']} is not known by "
        "name, or has parameters that JSON cannot hold; make the same Learner instead"
    )


def _read_joined(policy: AnyPolicy, joined: Any) -> dict[str, Any]:
    """Return the matrix of which a decider's `joined` was made."""
    if joined is None:
        return {}
    from scipy.sparse import coo_array

    known: Any = policy
    table = np.array(joined, np.float64).reshape(-1, 3)
    edges = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
    shape = (known.n_users, known.n_users)
    return {known.joined_by: coo_array((table[:, 2], edges), shape=shape).tocsr()}


def _policy_of(request: Mapping[str, Any]) -> AnyPolicy:
    written = dict(request["policy"])
    name = written.pop("name", None)
    require("experiment", "policy", "a table with a name", isinstance(name, str), request["policy"])
    options, people = request["options"], request["people"]
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


def places(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return the numbers of options by their names."""
    known = {name: i for i, name in enumerate(names)}
    missing = next((name for name in wanted if name not in known), None)
    require("experiment", "options", "by their names", missing is None, missing)
    return [known[name] for name in wanted]


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


def graph_of(people: Sequence[str], edges: Sequence[tuple[str, str]]) -> Graph:
    """Return who is joined to whom."""
    place = {name: i for i, name in enumerate(people)}
    require("experiment", "people", "all different", len(place) == len(people), len(people))
    unknown = next((name for edge in edges for name in edge if name not in place), None)
    require("experiment", "edges", "between its people", unknown is None, unknown)
    pairs = np.array([(place[u], place[v]) for u, v in edges], np.int64).reshape(-1, 2)
    return Graph.from_edges(pairs, n_nodes=len(people), duplicates="merge")
