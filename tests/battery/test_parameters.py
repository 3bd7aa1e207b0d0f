"""Bad parameters raise, in one sentence shape, and name themselves."""

from __future__ import annotations

import dataclasses
import math
import typing

import pytest

from battery.cases import cases, fields_of
from tacit.core.registry import build

BAD_NUMBERS = (-1, math.nan)
BAD_WORD = "no such choice"


def wrong_values() -> list[tuple[object, str, object]]:
    found = []
    for case in {case.kind: case for case in cases()}.values():
        hints = typing.get_type_hints(case.kind)
        for field in dataclasses.fields(case.kind):
            kinds = typing.get_args(hints[field.name]) or (hints[field.name],)
            bad: list[object] = []
            if bool in kinds or tuple in map(typing.get_origin, (hints[field.name], *kinds)):
                continue
            if int in kinds or float in kinds:
                bad += BAD_NUMBERS
            if str in kinds:
                bad.append(BAD_WORD)
            found += [(case, field.name, value) for value in bad]
    return found


@pytest.mark.parametrize(
    ("case", "parameter", "value"),
    wrong_values(),
    ids=lambda part: part.kind.name if hasattr(part, "kind") else str(part),
)
def test_a_bad_parameter_names_itself(case, parameter, value):
    environment = case.setting.easy(case.kind)
    with pytest.raises(ValueError, match=rf"^{case.kind.__name__}: expected .*{parameter}"):
        case.build(environment, case.rounds, **{parameter: value})


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_policy_is_frozen_keyword_only_and_says_what_it_is(case):
    policy = case.easy()[1]
    name = dataclasses.fields(case.kind)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(policy, name, 3)
    with pytest.raises(TypeError, match="positional"):
        case.kind(3)
    assert case.kind.summary
    assert case.kind.__doc__ is not None
    assert "Guarantee:" in case.kind.__doc__
    assert "Examples\n" in case.kind.__doc__


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_an_unknown_parameter_is_refused_with_the_known_ones(case):
    environment = case.setting.easy(case.kind)
    with pytest.raises(ValueError, match=r"has no parameter 'epsilonn'; it has .*n_"):
        case.build(environment, case.rounds, epsilonn=1.0)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_its_repr_builds_it_again(case):
    policy = case.easy()[1]
    values = {f.name: getattr(policy, f.name) for f in dataclasses.fields(policy) if f.init}
    assert case.kind(**values) == policy


def with_epsilon():
    """Return a case of every policy that has an epsilon."""
    known = {case.kind: case for case in cases() if "epsilon" in fields_of(case.kind)}
    return list(known.values())


@pytest.mark.parametrize("case", with_epsilon(), ids=lambda case: case.kind.name)
def test_an_epsilon_that_no_mechanism_keeps_is_refused_when_the_policy_is_made(case):
    environment = case.setting.easy(case.kind)
    others = {name: value for name, value in case.parameters.items() if name != "privacy"}
    for epsilon in (1e-16, 9e-10, 30.5, 36.0):
        with pytest.raises(
            ValueError, match=rf"^{case.kind.__name__}: expected epsilon between 1e-0?9 and 30"
        ):
            build(
                case.kind,
                environment.public_parameters(case.rounds),
                {**others, "epsilon": epsilon},
            )
