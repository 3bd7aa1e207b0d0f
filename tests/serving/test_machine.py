"""A state machine drives a stored learner through everything a caller can do, in any order."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import tacit
from serving.simulator import expect
from tacit.arms import DPSE, KLUCBCF, TSN
from tacit.contextual import FedUCB, PrivateContexts
from tacit.serving import RefusedError

ITEMS = {"0": [0.9], "1": [-0.4]}
VISITS = {"n_users": 2, "dimension": 1, "epsilon": 8.0}
POLICIES = (
    DPSE(n_arms=2, epsilon=20.0, horizon=10**6, failure_prob=0.9),
    KLUCBCF(n_arms=2, epsilon=1.0),
    TSN(n_arms=2),
    FedUCB(**VISITS),
    PrivateContexts(**VISITS),
)


FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None


class Callers(RuleBasedStateMachine):
    """Several callers and one learner, whose process ends now and then."""

    @initialize(
        policy=st.sampled_from(POLICIES),
        later=st.booleans(),
        budget=st.booleans(),
        explore=st.booleans(),
    )
    def begin(self, policy, later, budget, explore):
        self.folder = tempfile.TemporaryDirectory(dir=FAST)
        self.given = {
            "store": Path(self.folder.name, "x.db"),
            "report_after": 10.0 if later else None,
            "grace": 1.0,
            "retention": 20.0,
            "budget": {"lifetime": 400.0}
            if budget and policy.name in ("dpse", "klucb-cf")
            else None,
            "explore": 0.2 if explore and getattr(policy, "learns_from_any", True) else 0.0,
            "max_open": 8,
        }
        self.visits = policy.setting == "users"
        if self.visits:
            self.given["people"] = ["ada", "bob"]
        self.policy, self.now = policy, 1_800_000_000.0
        self.numbers = itertools.count()
        self.told, self.sent = {}, {}
        self.start()

    def start(self):
        self.learner = tacit.Learner(self.policy, **self.given)
        self.learner._experiment.clock = lambda: round(self.now * 1000)

    def teardown(self):
        if hasattr(self, "learner"):
            self.learner.close()
            self.folder.cleanup()

    def answer(self, decision):
        return decision.option, decision.probability, decision.report_at, decision.reason

    @rule(shown=st.booleans(), one=st.booleans())
    def decide(self, shown, one):
        id = f"d{next(self.numbers)}"
        words = {"person": "ada", "shown": shown, **({"eligible": ["0"]} if one else {})}
        if self.visits:
            words["contexts"] = ITEMS
        elif one and "0" not in self.learner.options:
            return
        try:
            decision = self.learner.decide(id=id, **words)
        except RefusedError as error:
            if error.reason != "full":
                raise
            return
        self.told[id] = (words, self.answer(decision))

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def ask_again(self, data):
        id = data.draw(st.sampled_from(sorted(self.told)))
        words, answer = self.told[id]
        again = self.learner.decide(id=id, **words)
        assert self.answer(again)[:2] == answer[:2]
        # It counts from when it was shown.
        assert (again.report_at or 0) >= (answer[2] or 0)
        with pytest.raises(RefusedError):
            self.learner.decide(id=id, **{**words, "person": "bob"})

    @precondition(lambda self: self.told)
    @rule(data=st.data(), value=st.sampled_from([0, 1]))
    def report(self, data, value):
        id = data.draw(st.sampled_from(sorted(self.told)))
        value = value if self.learner.trust == "local" else float(value)
        learned = self.learner.counts["learned"]
        try:
            receipt = self.learner.learn({"v": 1, "id": id, "value": value})
        except RefusedError as error:
            expect(error.reason in ("answered", "unasked", "closed", "unknown"), error)
            expect(error.reason != "answered" or self.sent[id] != value, error)
            return
        if receipt.status in ("learned", "held"):
            assert id not in self.sent
            self.sent[id] = value
        if receipt.status == "repeated":
            assert self.sent[id] == value
            assert self.learner.counts["learned"] == learned

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def show_or_cancel(self, data):
        id = data.draw(st.sampled_from(sorted(self.told)))
        what = data.draw(st.sampled_from(["show", "cancel"]))
        try:
            getattr(self.learner, what)(id)
        except RefusedError as error:
            expect(error.reason in ("closed", "unknown"), error)

    @rule(seconds=st.sampled_from([0.5, 5.0, 30.0]))
    def wait(self, seconds):
        self.now += seconds
        self.learner.tick()

    @rule(mode=st.sampled_from(["learn", "learn", "frozen", "off"]))
    def switch(self, mode):
        self.learner.set_mode(mode)

    @rule()
    def add(self):
        if self.visits:
            if len(self.learner._core.people) < 5:
                self.learner.add_person(f"new {len(self.learner._core.people)}")
        elif len(self.learner._core.options) < 5:
            self.learner.add_option(f"new {len(self.learner._core.options)}")

    @precondition(lambda self: not self.visits)
    @rule(data=st.data())
    def retire(self, data):
        option = data.draw(st.sampled_from(self.learner.options))
        if len(self.learner.options) > 1:
            try:
                self.learner.retire(option)
            except ValueError as error:
                expect("not dropped" in str(error), error)

    @rule()
    def restart(self):
        before = self.learner._core.snapshot()
        self.learner._experiment.store.close()
        self.start()
        assert self.learner._core.snapshot() == before

    @rule()
    def clean(self):
        self.learner.prune()
        store = self.learner._experiment.store
        for id in list(self.told):
            if id not in self.learner._core.open and not store.find("learner", id):
                self.told.pop(id)
                self.learner._core.decisions.closed.pop(id, None)
                self.learner._core.decisions.closed_before.pop(id, None)

    @invariant()
    def bounded(self):
        if hasattr(self, "learner"):
            assert self.learner.open_decisions <= 8
            assert self.learner.counts["learned"] <= len(self.sent) + self.learner.counts["silent"]


Callers.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestCallers = Callers.TestCase
