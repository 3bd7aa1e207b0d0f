"""What a state is made of: the parts that a policy uses, as small as allowed, as 0.2 stored them."""

from __future__ import annotations

import json
import tracemalloc
import zipfile

import numpy as np
import pytest

from battery.users_setting import flat
from tacit.contextual import CoLin, GOBLin, LinUCB, NoisySums, PerReward, Residual, RestartingLinUCB
from tacit.core.arrays import leaves, pack, save, unpack
from tacit.core.tapes import seeded_tape
from tacit.graphs import ring
from tacit.serving.description import read_request

SIZES = {"n_users": 3, "dimension": 2}
WEIGHTS = np.array([[0.6, 0.2, 0.0], [0.4, 0.6, 0.5], [0.0, 0.2, 0.5]])
PARTS = {
    "plain": (CoLin(**SIZES), set()),
    "report": (CoLin(**SIZES, epsilon=2.0), set()),
    "level": (CoLin(**SIZES, privacy=PerReward(epsilon=2.0, centred=True)), {"level"}),
    "question": (CoLin(**SIZES, privacy=Residual(epsilon=2.0), reward="symmetric"), {"deviation"}),
    "sums": (CoLin(**SIZES, privacy=NoisySums(epsilon=2.0, visits=9)), {"sums"}),
    "watch": (RestartingLinUCB(**SIZES, epsilon=2.0), {"watch"}),
}
every_part = pytest.mark.parametrize("name", PARTS)


def played(policy):
    state, tape, rng = policy.open(weights=WEIGHTS), seeded_tape(3), np.random.default_rng(1)
    for t in range(9):
        policy.update(state, tape, t % 3, rng.uniform(-0.5, 0.5, 2), rng.random())
    return state


@every_part
def test_a_policy_carries_only_what_it_uses(name):
    policy, parts = PARTS[name]
    state = policy.open(weights=WEIGHTS)
    optional = {"level", "deviation", "sums", "watch"}
    assert {part for part in optional if getattr(state, part) is not None} == parts


@every_part
def test_a_state_that_0_2_stored_opens(name, tmp_path):
    policy, _ = PARTS[name]
    state, fresh = played(policy), policy.open(weights=WEIGHTS)
    unpack(fresh, pack(flat(state)))
    policy.save(tmp_path / "new", state)
    save(tmp_path / "old", flat(state), _about(tmp_path / "new"))
    loaded = policy.load(tmp_path / "old", weights=WEIGHTS)
    for (part, array), (_, one), (_, other) in zip(
        *map(leaves, (state, fresh, loaded)), strict=True
    ):
        np.testing.assert_array_equal(array, one, err_msg=part)
        np.testing.assert_array_equal(array, other, err_msg=part)


def _about(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("about.json"))


def test_a_state_that_0_2_stored_of_another_policy_is_refused():
    state = played(PARTS["sums"][0])
    with pytest.raises(ValueError, match="state: expected the arrays"):
        unpack(PARTS["sums"][0].open(weights=WEIGHTS), pack(flat(played(PARTS["plain"][0]))))
    with pytest.raises(ValueError, match="state: expected the arrays"):
        unpack(LinUCB(n_users=2, dimension=2).open(), pack(flat(state)))


@pytest.mark.parametrize("name", ["goblin", "colin"])
def test_what_is_too_large_to_serve_is_refused_before_it_is_built(name):
    people = [f"person {i}" for i in range(1000)]
    request = {
        "name": "large",
        "policy": {"name": name, "dimension": 10, "epsilon": 2.0},
        "people": people,
        "edges": [[people[i], people[i - 1]] for i in range(1000)],
    }
    tracemalloc.start()
    with pytest.raises(ValueError, match="cannot join 1,000 people with 10 features") as refused:
        read_request(request).check_served()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    words = str(refused.value)
    assert "800,000,000 bytes and 268,435,456 are allowed" in words
    assert "join at most 579 people" in words
    assert "LinUCB" in words
    assert peak < 100e6  # the matrix alone would be 800 MB


def test_what_no_machine_can_hold_is_refused_before_it_is_built():
    policy = GOBLin(n_users=10_000, dimension=50)
    with pytest.raises(ValueError, match=r"GOBLin cannot join 10,000 people with 50 features"):
        policy.open(graph=ring(10_000))
    # The same people, whom nothing joins, need little.
    LinUCB(n_users=1000, dimension=10).require_size(1 << 28)
