"""The checks of `tacit check` hold for every policy, and each notices the fault it is there for."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
import pytest

from battery.cases import cases, tiered
from commands import tacit
from tacit.arms import KLUCBCF, UCB1, Bernoulli
from tacit.core.kernels import INTERPRETED
from tacit.privacy import Guarantee, RandomizedResponseRelease, compose
from tacit.simulation.policy_checks import CHECKS, NotApplicableError, Subject, check_policy

# These have tests of their own for every policy, which look closer: test_repeatability and test_privacy.
CLOSER = (
    "the table is left alone",
    "any number of threads",
    "no noise position is read twice",
    "secure numbers or refused",
    "compiled equals interpreted",
    "the audit does not refute it",
)
OF_NOISE = "noise is drawn where privacy is claimed"


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in CLOSER])
@pytest.mark.parametrize("case", tiered(cases()))
def test_every_policy_passes(case, name):
    environment, policy = case.easy()
    subject = Subject(policy=policy, environment=environment, horizon=case.rounds)
    with suppress(NotApplicableError if name == OF_NOISE else ()):
        CHECKS[name](subject)


PLACE = Bernoulli(means=(0.3, 0.7))


class Remembers(UCB1):
    """Keeps what it learned for the next run."""

    kept: ClassVar[list[Any]] = []

    def start(self, table: Any = None) -> Any:
        if not self.kept:
            self.kept.append(super().start(table))
        return self.kept[0]


class Scribbles(UCB1):
    def play(self, state, table, tape, trace, first, last):
        super().play(state, table, tape, trace, first, last)
        table.means[:] = 0.5


class CountsCalls(UCB1):
    def play(self, state, table, tape, trace, first, last):
        super().play(state, table, tape, trace, first, last)
        state.sums[0] += 1


class ClaimsWithoutNoise(UCB1):
    def guarantee(self, horizon: int) -> Guarantee:
        release = RandomizedResponseRelease(keep_zero=0.7, keep_one=0.7)
        return compose([(release, 1)], unit="reward", trust="local", span="run")


class ClaimsTooMuch(KLUCBCF):
    def guarantee(self, horizon: int) -> Guarantee:
        release = RandomizedResponseRelease(keep_zero=0.55, keep_one=0.55)
        return compose([(release, 1)], unit="reward", trust="local", span="run")


class Accepts(UCB1):
    def __post_init__(self) -> None:
        pass


class NotANumber(UCB1):
    def play(self, state, table, tape, trace, first, last):
        super().play(state, table, tape, trace, first, last)
        trace.measures[-1] = np.nan


class Deaf(UCB1):
    def play(self, state, table, tape, trace, first, last):
        pass


class Bluffs(UCB1):
    """Says it is not secure, and plays on a secure tape."""

    secure = False

    def program(self, state, table, tape, trace):
        return self.kernels.run, (self.params, state, table, tape, trace)


@pytest.mark.parametrize("name", CLOSER[:4])
def test_the_checks_that_others_make_closer_pass_too(name):
    CHECKS[name](Subject(policy=KLUCBCF(n_arms=2, epsilon=1.0), environment=PLACE))


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        (Remembers, "same seed same run", "two runs of one seed"),
        (Scribbles, "the table is left alone", "means was changed"),
        (CountsCalls, "chunked equals whole", "1 rounds at a time"),
        (ClaimsWithoutNoise, "noise is drawn where privacy is claimed", "drew no noise"),
        (Accepts, "bad parameters are refused", "n_arms=-1 is accepted"),
        (NotANumber, "one round and finite", "measures is not finite"),
        (Deaf, "another seed another run", "the same trace"),
        (Bluffs, "secure numbers or refused", "plays on a secure tape"),
    ],
)
def test_a_fault_is_noticed(kind, name, words):
    subject = Subject(policy=kind(n_arms=2), environment=PLACE)
    with pytest.raises(AssertionError, match=words):
        CHECKS[name](subject)
    if name != "noise is drawn where privacy is claimed":
        CHECKS[name](Subject(policy=UCB1(n_arms=2), environment=PLACE))


def test_a_claim_that_is_too_good_is_refuted():
    given = {"environment": PLACE, "horizon": 8, "runs": 1000}
    subject = Subject(policy=ClaimsTooMuch(n_arms=2, epsilon=2.0), **given)
    with pytest.raises(AssertionError, match="refuted"):
        CHECKS["the audit does not refute it"](subject)
    honest = Subject(policy=KLUCBCF(n_arms=2, epsilon=2.0), **given)
    CHECKS["the audit does not refute it"](honest)


def test_an_exception_of_a_policy_is_a_finding():
    class Breaks(UCB1):
        def start(self, table=None):
            raise RuntimeError("no")

    subject = Subject(policy=Breaks(n_arms=2), environment=PLACE)
    found = {finding.check: finding for finding in check_policy(subject)}
    assert found["same seed same run"] == (
        "same seed same run",
        "failed",
        "RuntimeError: no",
    )


@pytest.mark.skipif(INTERPRETED, reason="it starts an interpreted process of its own")
def test_the_command_checks_what_somebody_else_wrote(tmp_path):
    (tmp_path / "theirs.py").write_text(
        "class Stubborn:\n"
        "    def __init__(self, n_arms, luck: float = 0.5):\n"
        "        self.arm = n_arms - 1\n"
        "    def select(self):\n"
        "        return self.arm\n"
        "    def update(self, arm, reward):\n"
        "        pass\n"
    )
    words = ["check", "theirs:Stubborn:luck=1", "--environment", "bernoulli:means=[0.3,0.7]"]
    done = tacit(*words, "--horizon", "20", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("passed") >= 8
