"""Requests of HTTP and descriptions of experiments, made of each other."""

from __future__ import annotations

from typing import Any

import msgspec

from tacit.core.constraints import require
from tacit.core.decider import Decider
from tacit.core.registry import policies
from tacit.service.messages import ExperimentRequest, Reward
from tacit.serving.description import Description, by_value, check_request, read_request
from tacit.serving.storage.pseudonyms import Pseudonyms


def checked(request: ExperimentRequest) -> Decider:
    """Return the decider of an experiment, or raise ``ValueError`` if it cannot be made."""
    return check_request(msgspec.to_builtins(request))


def description_of(request: ExperimentRequest, choices: bytes = b"") -> Description:
    """Return what a request asks for."""
    return read_request(msgspec.to_builtins(request), choices)


def request_of(description: Description) -> ExperimentRequest:
    """Return the request for which a service would make what a learner made, or raise ``ValueError``."""
    config, options = description.config, list(description.options)
    if config.report_after is None:
        raise ValueError(
            f"{description.name} cannot be served, because its devices are not told when to report; "
            "make the learner with report_after instead"
        )
    wanted: dict[str, Any] = {
        "name": description.name,
        "policy": {**by_value(description.policy), "name": description.policy.name},
        "options": options or None,
        "reward": Reward(default=config.default or 0.0, report_after=config.report_after / 1000),
        "budget": {each.window: each.epsilon for each in config.allowances} or None,
        "mode": config.mode,
        "explore": description.explore,
        "baseline": options[config.baseline] if options else None,
        "grace": config.grace / 1000,
        "retention": config.retention / 1000,
        "max_open": config.max_open,
        "people": list(description.people) or None,
    }
    del wanted["policy"]["class"]
    return msgspec.convert(msgspec.to_builtins(wanted), ExperimentRequest)


def named_by(request: ExperimentRequest, pseudonyms: Pseudonyms) -> ExperimentRequest:
    """Return a description without names of people, as the store keeps it."""
    people, edges = request.people, request.edges
    called = {name: pseudonyms.of(name) for name in people or ()}
    return msgspec.structs.replace(
        request,
        people=None if people is None else list(called.values()),
        edges=None if edges is None else [(called[u], called[v]) for u, v in edges],
    )


def declare_reward(request: ExperimentRequest) -> ExperimentRequest:
    """Return a new description whose policy knows the kind of its rewards, if that matters to it.

    It is kept so: experiments of before learned otherwise, and their logs go on as they began.
    """
    name, kind = request.policy.get("name"), request.reward.kind
    known = policies().get(name) if isinstance(name, str) else None
    takes = "reward" in getattr(known, "__dataclass_fields__", {})
    if kind == "bounded" or not takes:
        return request
    given = request.policy.get("reward", kind)
    rule = f"{kind!r}, the kind of the experiment's reward"
    require("experiment", "policy.reward", rule, given == kind, given)
    return msgspec.structs.replace(request, policy={**request.policy, "reward": kind})
