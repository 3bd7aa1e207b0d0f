"""Decisions and what is known of an experiment, as messages."""

from __future__ import annotations

import math

import msgspec

from tacit.service.messages import (
    Decided,
    DecisionRequest,
    Described,
    OptionState,
    Reward,
    Statistic,
    Statistics,
)
from tacit.serving.core import Core
from tacit.serving.experiment import Experiment

_LIARS = 0.01


async def decide(experiment: Experiment, wanted: DecisionRequest, id: str | None = None) -> Decided:
    """Carry out a decision, and tell it."""
    decision = await experiment.ask(
        experiment.decide,
        id or wanted.id,
        wanted.person,
        wanted.eligible,
        wanted.contexts,
        wanted.shown,
    )
    core, at = experiment.core, decision.report_at
    instructions = core.instructions(decision)
    return Decided(
        id=decision.id,
        option=decision.name or core.options[decision.option],
        probability=decision.probability,
        report_at=None if at is None or instructions is None else at / 1000,
        instructions=instructions,
        reason=decision.reason or core.mode,
    )


def list_tallies(core: Core) -> list[str]:
    """Return what the tallies are of: each option, or all together where they come with decisions."""
    return core.options or ["all options"]


def make_statistics(experiment: Experiment) -> Statistics:
    """Return what may be seen of an experiment in numbers."""
    core = experiment.core
    hidden = core.hides_silence
    estimates = core.decider.estimates(core.tallies) or [None] * len(core.tallies)
    rows = []
    for i, (name, tally) in enumerate(zip(list_tallies(core), core.tallies, strict=True)):
        value, low, high = estimates[i] or (None, None, None)
        decided, shown, learned, silent, _ = map(int, tally)
        unseen = None if hidden else silent
        retired = i in core.retired
        rows.append(Statistic(name, retired, decided, shown, learned, unseen, value, low, high))
    due, leverage = core.learned + core.silent, core.decider.leverage
    return Statistics(
        experiment=experiment.name,
        rounds=core.rounds,
        open=len(core.open),
        late=None if hidden else core.late,
        missing_share=None if hidden or not due else core.silent / due,
        shift_by_lies=None if leverage is None else min(1.0, _LIARS * leverage),
        confidence=0.95,
        options=rows,
    )


def describe_experiment(experiment: Experiment) -> Described:
    """Return the public facts of an experiment."""
    core, description = experiment.core, experiment.description
    config, epsilon = description.config, core.decider.epsilon
    spec = {key: value for key, value in description.spec.items() if key != "class"}
    fixed = core.decider.n_options is not None and not description.people
    return Described(
        name=experiment.name,
        policy={"name": experiment.policy.name, **spec},
        setting=experiment.policy.setting,
        trust=core.decider.trust,
        options=[OptionState(name, i in core.retired) for i, name in enumerate(core.options)],
        mode=core.mode,
        reward=Reward(
            description.reward,  # type: ignore[arg-type]
            config.default or 0.0,
            (config.report_after or 0) / 1000,
        ),
        grace=config.grace / 1000,
        retention=config.retention / 1000,
        explore=description.explore,
        budget={each.window: each.epsilon for each in core.budget.allowances},
        guarantee=msgspec.json.decode(core.guarantee().to_json()),
        sentence=experiment.sentence(),
        epsilon_per_report=epsilon if math.isfinite(epsilon) else None,
        instructions=core.decider.instructions(0, None, config.default) if fixed else None,
        secure=experiment.policy.secure,
        version=1 + core.changes,
    )
