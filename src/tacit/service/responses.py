"""Between messages and experiments: what is asked becomes a command, what is known becomes an answer."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from tacit.core.decider import Decider, decider_for
from tacit.service.experiments import Hosted, decide_once
from tacit.service.messages import (
    Change,
    Decided,
    DecisionRequest,
    Described,
    OptionState,
    Statistic,
    Statistics,
)
from tacit.serving.core import Core, OpenDecision
from tacit.serving.description import graph_of, places, require_new

_LIARS = 0.01


async def decided(hosted: Hosted, wanted: DecisionRequest) -> tuple[OpenDecision, Any]:
    """Carry out a decision; return it with the names of what could be chosen."""
    core = hosted.core
    query: dict[str, Any] = {}
    names: Any = core.options
    if wanted.contexts is not None:
        names = list(wanted.contexts)
        query["contexts"] = list(wanted.contexts.values())
        query["names"] = names
    if wanted.eligible is not None:
        query["eligible"] = places(names, wanted.eligible)
    if wanted.person is not None and core.decider.n_people is not None:
        query["person"] = hosted.pseudonyms.find(wanted.person, core.people) or ""
    person = hosted.pseudonym(wanted.person)
    decision = await hosted.ask(decide_once, wanted.id, query or None, person, wanted.shown)
    return decision, names


def answer(hosted: Hosted, decision: OpenDecision, names: Any) -> Decided:
    """Return a decision as it is told."""
    at = decision.report_at
    instructions = hosted.core.instructions(decision)
    return Decided(
        id=decision.id,
        option=names[decision.option],
        probability=decision.probability,
        report_at=None if at is None or instructions is None else at / 1000,
        instructions=instructions,
        reason=decision.reason or hosted.core.mode,
    )


async def apply(hosted: Hosted, wanted: Change) -> None:
    """Carry out a change, all of it or nothing."""
    await hosted.ask(_change, hosted, wanted)


def _change(core: Core, now: int, hosted: Hosted, wanted: Change) -> None:
    changes: dict[str, Any] = {}

    def member(person: str) -> str:
        return hosted.pseudonyms.find(person, core.people) or hosted.pseudonyms.of(person)

    if isinstance(wanted.budget, dict):
        changes["allowances"] = wanted.budget
    if isinstance(wanted.add_options, list):
        require_new("option", wanted.add_options, core.options)
        changes["options"] = wanted.add_options
    if isinstance(wanted.retire_options, list):
        changes["retire"] = places(core.options, wanted.retire_options)
    if isinstance(wanted.mode, str):
        changes["mode"] = wanted.mode
    if isinstance(wanted.add_people, dict):
        require_new("person", list(wanted.add_people))
        changes["people"] = [
            (member(name), [member(friend) for friend in near])
            for name, near in wanted.add_people.items()
        ]
    if isinstance(wanted.edges, list):
        called = [(member(u), member(v)) for u, v in wanted.edges]

        def joined(decider: Decider, people: list[str]) -> Any:
            return decider_for(decider.policy, graph=graph_of(people, called)).joined

        changes["joined"] = joined
    core.change(now, **changes)


def tallied(core: Core) -> list[str]:
    """Return what the tallies are of: each option, or all together where they come with decisions."""
    return core.options or ["all options"]


def statistics_of(hosted: Hosted) -> Statistics:
    """Return what may be seen of an experiment in numbers."""
    core = hosted.core
    hidden = core.hides_silence
    estimates = core.decider.estimates(core.tallies) or [None] * len(core.tallies)
    rows = []
    for i, (name, tally) in enumerate(zip(tallied(core), core.tallies, strict=True)):
        value, low, high = estimates[i] or (None, None, None)
        rows.append(
            Statistic(
                option=name,
                retired=i in core.retired,
                decided=int(tally[0]),
                shown=int(tally[1]),
                learned=int(tally[2]),
                silent=None if hidden else int(tally[3]),
                estimate=value,
                low=low,
                high=high,
            )
        )
    due, leverage = core.learned + core.silent, core.decider.leverage
    return Statistics(
        experiment=hosted.name,
        rounds=core.rounds,
        open=len(core.open),
        late=None if hidden else core.late,
        missing_share=None if hidden or not due else core.silent / due,
        shift_by_lies=None if leverage is None else min(1.0, _LIARS * leverage),
        confidence=0.95,
        options=rows,
    )


def describe(hosted: Hosted) -> Described:
    """Return the public facts of an experiment."""
    core, request = hosted.core, hosted.request
    guarantee = hosted.guarantee()
    epsilon = core.decider.epsilon
    fixed = core.decider.n_options is not None and not request.people
    return Described(
        name=hosted.name,
        policy=request.policy,
        setting=hosted.policy.setting,
        trust=core.decider.trust,
        options=[OptionState(name, i in core.retired) for i, name in enumerate(core.options)],
        mode=core.mode,
        reward=request.reward,
        grace=request.grace,
        retention=request.retention,
        explore=request.explore,
        budget={each.window: each.epsilon for each in core.budget.allowances},
        guarantee=msgspec.json.decode(guarantee.to_json()),
        sentence=hosted.sentence(),
        epsilon_per_report=epsilon if math.isfinite(epsilon) else None,
        instructions=core.decider.instructions(0, None, core.config.default) if fixed else None,
        secure=hosted.policy.secure,
        version=1 + core.changes,
    )
