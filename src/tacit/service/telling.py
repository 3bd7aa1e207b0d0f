"""Between messages and experiments: what is asked becomes a command, what is known becomes an answer."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from tacit.deciding import decider_for
from tacit.service.description import graph_of, places, require_new
from tacit.service.hosting import Hosted, decide_once
from tacit.service.messages import (
    Change,
    Decided,
    DecisionRequest,
    Described,
    OptionState,
    Statistic,
    Statistics,
)
from tacit.serving.core import Core, Open

__all__ = ["answer", "apply", "decided", "describe", "statistics_of", "tallied"]

_LIARS = 0.01


async def decided(hosted: Hosted, wanted: DecisionRequest) -> tuple[Open, Any]:
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
        query["person"] = hosted.pseudonym(wanted.person)
    person = hosted.pseudonym(wanted.person)
    decision = await hosted.ask(decide_once, wanted.id, query or None, person, wanted.shown)
    return decision, names


def answer(hosted: Hosted, decision: Open, names: Any) -> Decided:
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
    """Carry out a change, option by option; what is refused is refused before anything is done."""
    names = hosted.core.options
    if isinstance(wanted.add_options, list):
        require_new("option", wanted.add_options, names)
    leaving = (
        places(names, wanted.retire_options) if isinstance(wanted.retire_options, list) else []
    )
    if isinstance(wanted.budget, dict):
        await hosted.ask(Core.set_allowances, wanted.budget)
    if isinstance(wanted.add_options, list):
        for name in wanted.add_options:
            await hosted.ask(Core.add_option, name)
    for option in leaving:
        await hosted.ask(Core.retire, option)
    if isinstance(wanted.mode, str):
        await hosted.ask(Core.set_mode, wanted.mode)
    if isinstance(wanted.add_people, dict):
        for name, near in wanted.add_people.items():
            friends = [hosted.pseudonym(friend) for friend in near]
            await hosted.ask(Core.add_person, hosted.pseudonym(name), friends)
    if isinstance(wanted.edges, list):
        await hosted.ask(_join, hosted, wanted.edges)


def _join(core: Core, now: int, hosted: Hosted, edges: list[tuple[str, str]]) -> None:
    called = [(str(hosted.pseudonym(u)), str(hosted.pseudonym(v))) for u, v in edges]
    graph = graph_of(list(core.people), called)
    core.set_edges(now, decider_for(core.decider.policy, graph=graph).joined)


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
        budget={each.window: each.epsilon for each in core.allowances},
        guarantee=msgspec.json.decode(guarantee.to_json()),
        sentence=hosted.sentence(),
        epsilon_per_report=epsilon if math.isfinite(epsilon) else None,
        instructions=core.decider.instructions(0, None, core.terms.default) if fixed else None,
        secure=hosted.policy.secure,
        version=1 + core.changes,
    )
