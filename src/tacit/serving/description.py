"""What an experiment is made from: one format for HTTP, TOML, a learner and a store, and one validation.

The format is the service's request, in JSON. A learner adds what a request cannot say: the class of a policy,
no `report_after`, no default reward, weights between people. A request comes from elsewhere, so it names no
module and no file. Stores of version 0.2 are read too.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
from tacit.serving.storage.pseudonyms import Pseudonyms, same_name

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$(?!\n)"
"""What a service can call an experiment. In Python ``$`` alone lets a line end pass."""
LONGEST = 200
"""Characters of a name."""
REQUEST: dict[str, Any] = {
    "options": None,
    "reward": {"kind": "bounded", "default": 0.0, "report_after": 60.0},
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
"""What holds where a request says nothing."""
_HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""What shows nothing, ends a line, turns the direction of what follows, or is half a character."""
_MOST_BYTES = 1 << 28
_MOST = 2**53


@dataclass(frozen=True, kw_only=True)
class Description:
    """An experiment before anything happened in it."""

    name: str
    policy: AnyPolicy
    spec: Mapping[str, Any]
    """The policy in JSON: as it was asked for, or by value."""
    config: ExperimentConfig
    reward: str = "bounded"
    """Its kind."""
    explore: float = 0.0
    options: Sequence[str] = ()
    people: Sequence[str] = ()
    """Names; in a store, pseudonyms."""
    edges: Sequence[Sequence[str]] | None = None
    """Who is joined to whom ..."""
    joined: Any = None
    """... or how much, in numbers, as a decider returns it ..."""
    given: Mapping[str, Any] | None = None
    """... or what the caller's own program says."""
    choices: bytes = b""
    """The key of its choices, which is logged."""
    old_names: bool = False
    """Whether a learner of version 0.2 made pseudonyms."""

    def make_decider(self) -> Decider:
        """Return the decider, with a state that has seen nothing."""
        return decider_for(self.policy, explore=self.explore, **self._join())

    def _join(self) -> Mapping[str, Any]:
        if self.given is not None:
            return self.given
        if self.edges is not None:
            return {"graph": graph_of(self.people, self.edges)}
        return _read_joined(self.policy, self.joined)

    def request(self) -> dict[str, Any]:
        """Return the request for it, in JSON."""
        config, options = self.config, list(self.options)
        after = config.report_after
        request = {
            "name": self.name,
            "policy": dict(self.spec),
            "options": options or None,
            "reward": {
                "kind": self.reward,
                "default": config.default,
                "report_after": None if after is None else after / 1000,
            },
            "budget": {each.window: each.epsilon for each in config.allowances} or None,
            "mode": config.mode,
            "explore": self.explore,
            "baseline": options[config.baseline] if options else None,
            "grace": config.grace / 1000,
            "retention": config.retention / 1000,
            "max_open": config.max_open,
            "people": list(self.people) or None,
            "edges": None if self.edges is None else [list(edge) for edge in self.edges],
        }
        joined = self.joined if self.given is None else self.make_decider().joined
        return request if joined is None else {**request, "joined": joined}

    def write(self) -> dict[str, Any]:
        """Return what a store keeps of it."""
        return {"request": self.request(), "choices": self.choices.hex()}

    def hide_people(self, pseudonyms: Pseudonyms) -> Description:
        """Return it with pseudonyms instead of people's names, as a store keeps it."""
        called = {name: pseudonyms.at_start(name) for name in self.people}
        distinct = len(set(called.values())) == len(self.people)
        require("experiment", "people", "all different", distinct, list(self.people))
        edges = self.edges and [(called[u], called[v]) for u, v in self.edges]
        return dataclasses.replace(self, people=list(called.values()), edges=edges)

    def check(self, *, seeded: bool = False) -> Decider:
        """Return the decider of a new experiment, or raise ``ValueError`` if it cannot be made.

        Parameters
        ----------
        seeded : bool
            Whether these are trial runs, whose noise need not be exact.
        """
        require_new("option", self.options)
        require_new("person", self.people)
        decider, config = self.make_decider(), self.config
        for what, n in (("options", decider.n_options), ("people", decider.n_people)):
            names: Sequence[str] = getattr(self, what)
            rule = "not given with this policy" if n is None else f"{n} different names"
            require("experiment", what, rule, len(names) == (n or 0), list(names))
        idle = self.edges is not None and decider.joined is None
        require("experiment", "edges", "not given, because it joins nobody", not idle, "edges")
        if not seeded:
            require_exact(decider, "; a Learner with a seed makes trial runs")
        low, high = decider.reward_range
        fits = config.default is None or low <= config.default <= high
        require("experiment", "default", f"in [{low:g}, {high:g}]", fits, config.default)
        require_budget("experiment", decider, config.allowances)
        require_mode(decider, config.mode)
        return decider

    def check_served(self) -> Decider:
        """Return the decider of a new experiment of a service, or raise ``ValueError``."""
        try:
            return self._check_served()
        except (MemoryError, OverflowError):
            raise ValueError("experiment: expected parameters of a size that can be kept") from None

    def _check_served(self) -> Decider:
        self.policy.require_size(_MOST_BYTES, **self._join())
        decider = self.check()
        self.require_served()
        why = decider.not_stored
        require("experiment", "policy", f"one that can be kept ({why})", not why, self.policy.name)
        small = decider.nbytes <= _MOST_BYTES
        require("experiment", "policy", f"of at most {_MOST_BYTES:,} bytes", small, decider.nbytes)
        self.policy.guarantee(1)
        for option in range(decider.n_options or 0):
            decider.instructions(option, None, self.config.default)
        return decider

    def require_served(self) -> None:
        """Raise ``ValueError`` if it cannot go over HTTP, as not everything that a learner can do does."""
        rule = "one that needs no shuffler: operators and exports of a service see single reports"
        mixed = self.policy.guarantee(1).trust == "shuffler"
        require("experiment", "policy", rule, not mixed, self.policy.name)
        fits = re.match(NAME, self.name) is not None
        require("experiment", "name", "of letters, digits, '.', '_' and '-'", fits, self.name)
        if self.config.report_after is None:
            raise ValueError(
                f"{self.name} cannot be served, because its devices are not told when to report; "
                "make the learner with report_after instead"
            )


def find_differences(was: Description, now: Description) -> Iterable[tuple[str, Any, Any]]:
    """Yield in which words two descriptions differ, with both values."""
    one, other = _words(was), _words(now)
    for word in one:
        if one[word] != other[word]:
            yield word, one[word], other[word]


def _words(description: Description) -> dict[str, Any]:
    request, spec = description.request(), description.spec
    stated = same_by_value(spec) if "class" in spec else by_value(description.policy)
    policy = {f"policy.{name}": value for name, value in stated.items()}
    reward, joined = request["reward"], description.make_decider().joined
    others = {
        "joined": joined,
        "report_after": reward["report_after"],
        "default": reward["default"],
    }
    same = {name: request[name] for name in request if name not in ("policy", "reward", "edges")}
    return policy | same | others


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
        return read_request(stored["request"], choices, policy)
    return _read_learner_of_0_2(name, kept, policy or _read_policy(name, stored["policy"]), choices)


def _read_learner_of_0_2(
    name: str, kept: StoredExperiment, policy: AnyPolicy, choices: bytes
) -> Description:
    """Return what a learner of version 0.2 kept: its people are in its snapshot."""
    stored, n = kept.description, getattr(policy, "n_users", 0)
    people, joined = (), None
    if n:
        require(name, "people", "in a snapshot, which 0.2 had not made", bool(kept.snapshot), None)
        about: Mapping[str, Any] = kept.snapshot.about if kept.snapshot else {}
        people, joined = about["people"][:n], about["joined"]
        joined = joined and [edge for edge in joined if max(edge[:2]) < n]
    return Description(
        name=name,
        policy=policy,
        spec=same_by_value(stored["policy"]),
        config=read_config(stored["terms"]),
        choices=choices,
        explore=stored["explore"],
        options=stored["options"] or (),
        people=people,
        joined=joined,
        old_names=True,
    )


def read_config(terms: Mapping[str, Any]) -> ExperimentConfig:
    """Return what learners of version 0.2, and saved ones, keep of how an experiment is run."""
    each = tuple(Allowance(**allowance) for allowance in terms["allowances"])
    return ExperimentConfig(**{**terms, "allowances": each})


def read_request(
    request: Mapping[str, Any], choices: bytes = b"", policy: AnyPolicy | None = None
) -> Description:
    """Return what a request asks for, or raise ``ValueError``."""
    request = {**REQUEST, **request}
    reward = {**REQUEST["reward"], **request["reward"]}
    if policy is None or "class" not in request["policy"]:
        policy = _policy_of(request)
    options, baseline = request["options"] or (), request["baseline"]
    config = ExperimentConfig(
        report_after=read_seconds("report_after", reward["report_after"]),
        grace=read_seconds("grace", request["grace"]) or 0,
        retention=read_seconds("retention", request["retention"]) or 0,
        default=reward["default"],
        max_open=request["max_open"],
        allowances=read_allowances(request["budget"] or {}),
        mode=request["mode"],
        baseline=0 if baseline is None else find_option(options, baseline),
    )
    return Description(
        name=request["name"],
        policy=policy,
        spec=request["policy"],
        config=config,
        reward=reward["kind"],
        explore=request["explore"],
        options=options,
        people=request["people"] or (),
        edges=request["edges"],
        joined=request.get("joined"),
        choices=choices,
    )


def declare_reward(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a new request whose policy knows the kind of its rewards, if that matters to it.

    It is kept so: experiments of before learned otherwise, and their logs go on as they began.
    """
    name, kind = request["policy"].get("name"), request.get("reward", {}).get("kind", "bounded")
    known = policies().get(name) if isinstance(name, str) else None
    takes = "reward" in getattr(known, "__dataclass_fields__", {})
    if kind == "bounded" or not takes:
        return request
    given = request["policy"].get("reward", kind)
    rule = f"{kind!r}, the kind of the experiment's reward"
    require("experiment", "policy.reward", rule, given == kind, given)
    return {**request, "policy": {**request["policy"], "reward": kind}}


def by_value(policy: AnyPolicy) -> dict[str, Any]:
    """Return the class and parameters of a policy, for JSON."""
    return {"class": _class_name(type(policy)), **plain(policy)}


def _class_name(kind: type) -> str:
    """Return what a class is called; one of Tacit's without its module, which may move."""
    package = "tacit" if kind.__module__.startswith("tacit.") else kind.__module__
    return f"{package}.{kind.__qualname__}"


def same_by_value(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `by_value` says today of a policy of which it said this."""
    package, _, name = str(stored["class"]).rpartition(".")
    return {**stored, "class": f"tacit.{name}" if package.startswith("tacit.") else stored["class"]}


def _read_policy(owner: str, stored: Mapping[str, Any]) -> AnyPolicy:
    """Return the policy of which `by_value` returned this, without importing anything."""
    stored = same_by_value(stored)
    parameters = {name: value for name, value in stored.items() if name != "class"}
    for kind in policies().values():
        if _class_name(kind) == stored["class"]:
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
    if "class" in written:
        return _read_policy(request["name"], written)
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
        distinct = len(set(options)) == len(options)
        require("experiment", "options", "all different", distinct, options)
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


def read_seconds(name: str, seconds: float | None) -> int | None:
    """Return seconds as milliseconds."""
    if seconds is None:
        return None
    number = isinstance(seconds, int | float) and 0 <= seconds < 1e11
    require("experiment", name, ">= 0 seconds, a number", number, seconds)
    return round(seconds * 1000)


def find_option(names: Sequence[Any], option: Any) -> int:
    """Return the number of an option by its name, or by its number."""
    if option in names:
        return names.index(option)
    numbered = type(option) is int and 0 <= option < len(names)
    shown = [*names[:10], "..."] if len(names) > 10 else list(names)
    require("experiment", "option", f"one of {shown}", numbered, option)
    return int(option)


def require_new(kind: str, names: Sequence[str], known: Iterable[str] = ()) -> None:
    """Refuse names that are not what they look like, or look like one in use."""
    used, mine = set(map(same_name, known)), set[str]()
    for name in names:
        text = type(name) is str and 1 <= len(name) <= LONGEST
        seen = text and not _HIDDEN.search(name) and name == name.strip()
        rule = f"of 1 to {LONGEST} characters that can be seen, not spaced out"
        require("experiment", kind, rule, seen, ascii(name)[:LONGEST])
        if same_name(name) in used:
            raise RefusedError("conflict", f"{kind} {name!r}: expected a new name, got one in use")
        twin = same_name(name) in mine
        require("experiment", f"{kind} names", "all different", not twin, name)
        mine.add(same_name(name))


def graph_of(people: Sequence[str], edges: Sequence[Sequence[str]]) -> Graph:
    """Return who is joined to whom."""
    place = {name: i for i, name in enumerate(people)}
    require("experiment", "people", "all different", len(place) == len(people), len(people))
    unknown = next((name for edge in edges for name in edge if name not in place), None)
    require("experiment", "edges", "between its people", unknown is None, unknown)
    pairs = np.array([(place[u], place[v]) for u, v in edges], np.int64).reshape(-1, 2)
    return Graph.from_edges(pairs, n_nodes=len(people), duplicates="merge")
