"""Guarantees are values: they validate, convert by composition, speak plainly, never overstate."""

from __future__ import annotations

import dataclasses
import doctest
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.arms import SWKLUCBCF
from tacit.privacy import (
    BallRelease,
    BoundedNoiseRelease,
    Claim,
    DiscreteGaussianRelease,
    DiscreteLaplaceRelease,
    GaussianRelease,
    Guarantee,
    L2CalibratedLaplaceRelease,
    LaplaceRelease,
    PiecewiseRelease,
    PureRelease,
    RandomizedResponseRelease,
    Release,
    UnaryRelease,
    compose,
    composed_epsilon,
    strength,
)
from tacit.privacy.accounting import _epsilon, _Losses
from tacit.simulation.guarantees import person, spans

CLAIM = Claim(epsilon=0.1, unit="reward", trust="local", span="run", holds=False, why="an atom")


def local(release: object = None) -> Guarantee:
    release = release or LaplaceRelease(scale=2.0)
    return compose([(release, 1)], unit="reward", trust="local", span="message")  # type: ignore[list-item]


def test_local_records_compose() -> None:
    one = local(RandomizedResponseRelease.symmetric(1.0))
    user = one.for_user(rounds=100, delta=1e-6)
    assert (user.unit, user.trust, user.basis) == ("user", "local", "accounted")
    assert user.epsilon == pytest.approx(83.53, abs=0.01)
    assert one.for_user(rounds=100).epsilon == pytest.approx(100.0)
    assert one.over(messages=100, delta=1e-6).epsilon == pytest.approx(83.53, abs=0.01)
    assert one.over(messages=7).span == "run"


def test_records_in_a_central_sum_add_their_sensitivities() -> None:
    one = compose(
        [(GaussianRelease(scale=5.0), 1)], delta=1e-6, unit="reward", trust="central", span="run"
    )
    ten = one.for_user(rounds=10)
    alone = compose(
        [(GaussianRelease(sensitivity=10.0, scale=5.0), 1)],
        delta=1e-6,
        unit="user",
        trust="central",
        span="run",
    )
    assert ten.epsilon == alone.epsilon
    spread = compose(
        [(GaussianRelease(scale=5.0), 10)], delta=1e-6, unit="user", trust="central", span="run"
    )
    assert ten.epsilon > 2 * spread.epsilon


def test_more_rounds_never_cost_less() -> None:
    curve = local().curve([1, 2, 5, 20, 100], delta=1e-6)
    epsilons = [epsilon for _, epsilon in curve]
    assert epsilons == sorted(epsilons)
    assert [m for m, _ in curve] == [1, 2, 5, 20, 100]


def test_a_larger_delta_never_costs_more() -> None:
    user = local().for_user(rounds=50)
    assert user.at(1e-9).epsilon >= user.at(1e-6).epsilon >= user.at(1e-3).epsilon
    assert user.at(1e-6).delta == 1e-6
    assert user.delta_at(user.at(1e-6).epsilon) == pytest.approx(1e-6, rel=1e-3)


def test_gaussian_noise_without_delta_is_no_guarantee() -> None:
    nothing = compose([(GaussianRelease(scale=5.0), 1)], unit="reward", trust="central", span="run")
    assert not nothing.private
    assert nothing.epsilon == math.inf
    assert nothing.sentence().startswith("Nothing protects one reward")
    assert nothing.at(1e-6).private
    assert "No finite" not in nothing.at(1e-6).sentence()


def test_what_no_epsilon_avoids_is_said() -> None:
    release = BoundedNoiseRelease(scale=1.0, bound=5.0)
    least = release.delta(1e9)
    nothing = compose([(release, 3)], delta=1e-6, unit="reward", trust="local", span="run")
    together = 1 - (1 - least) ** 3
    assert nothing.note == (
        f"No finite epsilon holds at delta = 1e-06: it is at least {together:.3g} whatever epsilon."
    )
    assert nothing.at(1.01 * together).private
    assert not nothing.at(0.99 * together).private


def test_local_sums_of_a_user_are_one_sum_of_more() -> None:
    """Three records in one noisy sum move it three times as far; three sums compose."""
    scope = {"unit": "reward", "trust": "local", "span": "run", "delta": 1e-6}
    release = GaussianRelease(scale=5.0)
    apart, pooled = (compose([(release, 1)], pooled=p, **scope) for p in (False, True))
    assert pooled.epsilon == apart.epsilon
    assert pooled.for_user(3).epsilon == pytest.approx(
        composed_epsilon([(GaussianRelease(sensitivity=3.0, scale=5.0), 1)], 1e-6)
    )
    assert pooled.for_user(3).epsilon > 1.5 * apart.for_user(3).epsilon
    assert pooled.at(1e-3).for_user(3) == pooled.for_user(3, delta=1e-3)
    assert Guarantee.from_json(pooled.to_json()) == pooled


def test_nothing_stays_nothing() -> None:
    nothing = Guarantee.none("UCB1 adds no noise", claim=None)
    for other in (nothing.for_user(rounds=3), nothing.at(1e-6)):
        assert not other.private
        assert "UCB1 adds no noise." in other.sentence()
    assert ("protected from", "nobody") in nothing.table()


def test_the_sentence_says_who_what_and_how_long() -> None:
    text = local().sentence()
    for words in ("one reward", "one message", "epsilon = 0.5", "the server included", "1.649"):
        assert words in text
    text = compose(
        [(LaplaceRelease(scale=2.0), 3)],
        delta=1e-6,
        unit="round",
        trust="central",
        span="run",
        claim=CLAIM,
        note="Only so far",
    ).sentence()
    for words in (
        "one round",
        "whole run",
        "except with probability 1e-06",
        "which is trusted",
        "does not hold: an atom.",
        "Only so far.",
    ):
        assert words in text


def test_what_is_left_open_is_said_everywhere() -> None:
    scope = {"trust": "local", "span": "run"}
    told = compose(
        [(LaplaceRelease(scale=2.0), 1)],
        unit="loss",
        not_protected=("sending", "the colour of the sky"),
        **scope,
    )
    assert "Not protected: whether and when anything is sent; the colour of the sky." in (
        told.sentence()
    )
    assert ("not protected", "the colour of the sky") in told.table()
    assert json.loads(told.to_json())["not_protected"] == ["sending", "the colour of the sky"]
    by_default = compose([(LaplaceRelease(scale=2.0), 1)], unit="reward", **scope)
    assert "whether and when anything is sent" in by_default.sentence()
    assert "further records of the same person" in by_default.sentence()
    assert "further records" not in by_default.for_user(rounds=3).sentence()
    assert Guarantee.none("No noise").not_protected == ()
    with pytest.raises(ValueError, match="expected not_protected a tuple of words"):
        compose([], unit="loss", not_protected=("",), **scope)


def test_the_units_of_a_population_have_their_own_words() -> None:
    scope = {"trust": "local", "span": "run"}
    words = {
        "loss": "one agent's loss",
        "message": "one message",
        "agent": "one agent's whole history",
    }
    for unit, said in words.items():
        assert said in compose([(LaplaceRelease(scale=2.0), 1)], unit=unit, **scope).sentence()
    history = compose([(LaplaceRelease(scale=2.0), 1)], unit="loss", **scope).for_user(rounds=5)
    assert (history.unit, history.epsilon) == ("agent", 2.5)
    assert "For an agent with 5 losses." in history.note


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        (0.0, "hides it wholly"),
        (0.1, "hides it almost wholly"),
        (1.0, "hides it well"),
        (3.0, "blurs it"),
        (10.0, "hardly hides it"),
        (10.1, "hides nothing"),
        (50.0, "hides nothing"),
        (math.inf, "hides nothing"),
    ],
)
def test_sizes_have_words(epsilon: float, words: str) -> None:
    assert strength(epsilon) == words
    if 0 < epsilon < math.inf:
        told = compose([(PureRelease(level=epsilon), 1)], unit="reward", trust="local", span="run")
        assert f", which {words};" in told.sentence()


def test_where_no_record_is_used_no_epsilon_is_praised() -> None:
    nothing = compose([], unit="user", trust="local", span="run", note="Any arm at random")
    assert nothing.sentence() == (
        "No record is used: nothing that anybody sees depends on one. Any arm at random."
    )
    assert nothing.brief() == "no record is used"
    assert nothing.for_user(rounds=9).unused
    assert Guarantee.from_json(nothing.to_json()) == nothing


RELEASES = st.sampled_from(
    [
        LaplaceRelease(scale=2.0),
        GaussianRelease(scale=3.0),
        RandomizedResponseRelease.symmetric(0.7),
        UnaryRelease.optimised(1.0),
        BallRelease(scale=1.0, dimension=3),
        L2CalibratedLaplaceRelease(scale=1.0, dimension=2, shift=(0.6, 0.8)),
    ]
)


@settings(deadline=None)
@given(
    parts=st.lists(st.tuples(RELEASES, st.integers(1, 5)), min_size=1, max_size=3),
    unit=st.sampled_from(["reward", "round", "user", "visit", "loss", "message", "agent"]),
    trust=st.sampled_from(["central", "local"]),
    claim=st.sampled_from([None, CLAIM]),
)
def test_json_reads_back(parts: list, unit: str, trust: str, claim: Claim | None) -> None:
    guarantee = compose(parts, unit=unit, trust=trust, span="run", claim=claim, note="a note")
    text = guarantee.to_json()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert Guarantee.from_json(text) == guarantee


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": -1.0}, "Guarantee: expected epsilon >= 0, got -1.0"),
        ({"epsilon": math.nan}, "expected epsilon"),
        ({"delta": 1.5}, "expected delta"),
        ({"unit": "person"}, "expected unit in"),
        ({"trust": "nobody"}, "expected trust in"),
        ({"span": "day"}, "expected span in"),
        ({"basis": "guess"}, "expected basis in"),
        ({"epsilon": math.inf}, "expected basis 'none' exactly when nothing is protected"),
        ({"basis": "none"}, "expected basis 'none' exactly when nothing is protected"),
    ],
)
def test_bad_values_name_themselves(change: dict[str, object], message: str) -> None:
    good: dict[str, object] = {
        "epsilon": 1.0,
        "unit": "reward",
        "trust": "local",
        "span": "run",
        "basis": "theorem",
    }
    Guarantee(**good)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message):
        Guarantee(**good | change)  # type: ignore[arg-type]


def test_conversions_refuse_what_makes_no_sense() -> None:
    with pytest.raises(
        ValueError, match=r"expected unit in \['loss', 'message', 'reward', 'round', 'visit'\]"
    ):
        local().for_user(rounds=3).for_user(rounds=3)
    with pytest.raises(ValueError, match="expected span == 'message'"):
        local().over(messages=3).over(messages=3)
    bare = Guarantee(epsilon=1.0, unit="reward", trust="local", span="run", basis="theorem")
    with pytest.raises(ValueError, match="expected releases not empty"):
        bare.for_user(rounds=3)


SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schemas" / "guarantee.schema.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("example", SCHEMA["examples"], ids=["private", "none"])
def test_the_examples_of_the_schema_are_guarantees(example: dict[str, object]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(example, SCHEMA)
    read = Guarantee.from_json(json.dumps(example))
    assert json.loads(read.to_json()) == example


def test_every_guarantee_fits_the_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    for policy in private_policies():
        jsonschema.validate(json.loads(policy.guarantee(100).to_json()), SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**SCHEMA["examples"][0], "unit": "person"}, SCHEMA)


def private_policies() -> list:
    from tacit.core.registry import policies

    found = []
    for name, kind in policies().items():
        if any(field.name == "epsilon" for field in dataclasses.fields(kind)):
            found.append(policy_of({"name": name, "epsilon": 1.0}))
    assert len(found) >= 8
    return found


def policy_of(spec: dict):
    from tacit.core.registry import build_pair

    return build_pair(spec, None, 10**15)[0]


def test_what_a_person_loses_needs_no_loop_over_the_horizon() -> None:
    """10^15 rounds: anything that counts them never comes back, or does not fit into memory."""
    for policy in private_policies():
        rows = spans(policy, 10**15, 1e-6)
        assert len(rows) >= 2
        shown = {(row["protected"], f"{row['epsilon']:.4g}") for row in rows}
        assert len(shown) == len(rows), rows  # no row says what another said
        assert "e+15" in f"{rows[-2]['epsilon']:g}" or rows[-1]["epsilon"] > 1e13


@pytest.mark.parametrize(
    "spec",
    [
        {"name": "shuffled-klucb-cf", "epsilon": 1.0, "delta": 0.01, "block": 1000},
        {"name": "colin", "privacy": {"kind": "published", "epsilon": 2.0, "trust": "local"}},
        {"name": "colin", "privacy": {"kind": "noisy-sums", "epsilon": 2.0, "trust": "central"}},
        {"name": "diffusion-outsiders", "epsilon": 1.0, "variant": "published"},
        {"name": "dp-imed", "epsilon": 1.0},
    ],
    ids=lambda spec: f"{spec['name']} {spec.get('privacy', {}).get('kind', '')}",
)
def test_what_a_person_loses_takes_few_looks_at_any_curve(spec, monkeypatch) -> None:
    """A look at a curve costs about a millisecond: 300 are what the command line has time for."""
    looks = []

    def counted(curve):
        return lambda release, epsilon: (looks.append(epsilon.size), curve(release, epsilon))[1]

    def kinds(kind):
        return [kind, *(each for part in kind.__subclasses__() for each in kinds(part))]

    for kind in kinds(Release):
        if "_hockey_stick" in vars(kind) and kind is not Release:
            monkeypatch.setattr(kind, "_hockey_stick", counted(vars(kind)["_hockey_stick"]))
    policy = policy_of(spec)
    _Losses.of.cache_clear()
    _epsilon.cache_clear()
    spans(policy, 10**15, 1e-6, records=50)
    assert 0 < len(looks) <= 300
    assert sum(looks) <= 10_000


def test_a_person_with_fifty_rewards() -> None:
    policy = SWKLUCBCF(n_arms=2, horizon=1000, epsilon=1.0)
    assert person(policy, 1000, 50).epsilon == pytest.approx(50.0)
    assert person(policy, 1000, 50, 1e-6).epsilon == pytest.approx(47.65, abs=0.01)
    assert person(policy, 1000, 50).unit == "user"
    with pytest.raises(ValueError, match=r"expected records in \[1, 1000\], got 1001"):
        person(policy, 1000, 1001)


def test_an_event_of_dp_accounting_costs_what_we_say() -> None:
    """Accountants of that library, fed with our events, come to our numbers or above."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    relation = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    scope = {"unit": "user", "trust": "local", "span": "run", "delta": 1e-6}
    exact = [
        [(LaplaceRelease(scale=10.0), 50)],
        [(RandomizedResponseRelease.symmetric(1.0), 40)],
        [(LaplaceRelease(scale=10.0), 50), (RandomizedResponseRelease.symmetric(0.5), 7)],
        [(DiscreteLaplaceRelease(steps=7, scale=20), 30)],
    ]
    for parts in exact:
        ours = compose(parts, **scope)  # type: ignore[arg-type]
        accountant = PLDAccountant(relation)
        accountant.compose(ours.to_dp_event())
        assert accountant.get_epsilon(1e-6) == pytest.approx(ours.epsilon, rel=1e-2)
    for release in (PiecewiseRelease(level=0.5, likely=0.56), BallRelease(scale=2.0, dimension=9)):
        ours = compose([(release, 40)], **scope)  # type: ignore[arg-type]
        accountant = PLDAccountant(relation)
        accountant.compose(ours.to_dp_event())
        assert accountant.get_epsilon(1e-6) >= ours.epsilon
    smooth = compose([(DiscreteGaussianRelease(steps=10, sigma=100.0), 9)], **scope)  # type: ignore[arg-type]
    accountant = RdpAccountant(neighboring_relation=relation)
    accountant.compose(smooth.to_dp_event())
    assert accountant.get_epsilon(1e-6) >= smooth.epsilon


def test_events_for_what_has_no_noise_of_its_own() -> None:
    import dp_accounting

    scope = {"unit": "user", "trust": "local", "span": "run"}
    assert compose([], **scope).to_dp_event() == dp_accounting.NoOpDpEvent()  # type: ignore[arg-type]
    assert Guarantee.none("No noise").to_dp_event() == dp_accounting.NonPrivateDpEvent()
    atom = compose([(BoundedNoiseRelease(scale=1.0, bound=5.0), 3)], delta=0.5, **scope)  # type: ignore[arg-type]
    assert atom.to_dp_event() == dp_accounting.NonPrivateDpEvent()
    stated = Guarantee(epsilon=1.0, delta=1e-6, basis="theorem", **scope)  # type: ignore[arg-type]
    assert stated.to_dp_event() == dp_accounting.UnsupportedDpEvent()


def test_import_loads_nothing_heavy() -> None:
    heavy = ("dp_accounting", "scipy.special", "scipy.stats", "opendp", "matplotlib")
    code = f"import sys, tacit.privacy; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_page_that_teaches_guarantees_is_true() -> None:
    page = Path(__file__).parents[2] / "docs" / "guarantees.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried > 20
    assert failed == 0


CORE = """
import sys

for name in ("dp_accounting", "pyarrow", "matplotlib", "typer"):
    sys.modules[name] = None
import tacit
from tacit.arms import SWKLUCBCF
from tacit.simulation import Study, run_study

stated = SWKLUCBCF(n_arms=2, horizon=100, epsilon=1.0).guarantee(100)
print(round(stated.for_user(50, delta=1e-6).epsilon, 2))
study = Study(name="s", environment={"name": "riser"}, policies=({"name": "ucb1"},), horizon=50)
for call in (stated.to_dp_event, lambda: run_study(study, sys.argv[1], workers=1)):
    try:
        call()
    except (ValueError, ModuleNotFoundError) as error:
        print(error)
"""


def test_the_core_alone_accounts_and_says_what_more_needs_before_the_work(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CORE, str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "47.65",
        "to_dp_event needs dp-accounting: pip install 'tacit[privacy]'",
        "results are Arrow tables, which need pyarrow; pip install 'tacit[cli]'",
    ], done.stderr
    assert not (tmp_path / "out").exists()
