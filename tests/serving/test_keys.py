"""The key of pseudonyms: a store goes on with its own, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

import tacit
from tacit.arms import KLUCBCF
from tacit.serving import StoreError

POLICY = KLUCBCF(n_arms=2, epsilon=1.0)
BUDGET = {"lifetime": 1.0}


def key_file(place):
    return Path(f"{place.beside}.key")


def spend(place, person="ada", **how):
    with place.learner(POLICY, budget=BUDGET, **how) as learner:
        return learner.decide(person=person).reason


def test_a_lost_or_other_key_is_refused(place):
    # Finding P8
    assert spend(place) == ""
    key = key_file(place).read_bytes()
    key_file(place).unlink()
    for _ in range(2):
        with pytest.raises(StoreError, match="found none; bring it back"):
            spend(place)
    assert not key_file(place).exists()
    with pytest.raises(StoreError, match=r"expected the key of pseudonyms .* got another"):
        spend(place, key=bytes(32))
    key_file(place).write_bytes(bytes(32))
    with pytest.raises(StoreError, match="got another"):
        spend(place)
    key_file(place).write_bytes(key)
    assert spend(place) == "budget"
    assert spend(place, key=key) == "budget"
    assert spend(place, "bob") == ""


def test_a_store_of_version_0_2_takes_over_the_key_it_has(place):
    # Finding P8
    assert spend(place) == ""
    place.run("DELETE FROM keys")
    key = key_file(place).read_bytes()
    key_file(place).unlink()
    with pytest.raises(StoreError, match="found none"):
        spend(place)
    key_file(place).write_bytes(key)
    assert spend(place) == "budget"
    key_file(place).write_bytes(bytes(32))
    with pytest.raises(StoreError, match="got another"):
        spend(place)


def test_a_store_that_knows_nobody_gets_a_key(place):
    place.open().close()
    assert not key_file(place).exists()
    assert spend(place) == ""
    assert len(key_file(place).read_bytes()) == 32


def test_a_learner_of_people_without_charges_needs_its_key_too(tmp_path):
    from tacit.contextual import LinUCB

    policy = LinUCB(n_users=1, dimension=2)
    for turn in range(2):
        with tacit.Learner(policy, people=["ada"], store=tmp_path / "s.db") as learner:
            learner.decide(person="ada", contexts=[[1.0, 0.0]])
        if turn == 0:
            (tmp_path / "s.db.key").unlink()
            with pytest.raises(StoreError, match="found none"):
                tacit.Learner(policy, people=["ada"], store=tmp_path / "s.db")
            return
