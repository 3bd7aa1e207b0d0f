"""Prio3 against the official vectors of the VDAF draft, against its definition, and against liars."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from oracles import prio3 as oracle
from tacit.aggregation import Prio3, Report, best_chunk, proofs
from tacit.aggregation.field import LARGE, SMALL, Field, add, multiply, subtract

OFFICIAL = Path(__file__).parents[3] / "shared" / "vdaf"
OWN = Path(__file__).parents[2] / "vectors" / "aggregation" / "prio3.json"
NAMES = sorted(each.stem for each in OFFICIAL.glob("Prio3[CH]*.json"))
KEY, CONTEXT = bytes(range(32)), b"a test"


def vdaf_of(vector):
    histogram = "length" in vector
    return Prio3(
        length=vector.get("length", 1),
        chunk=vector.get("chunk_length"),
        histogram=histogram,
        shares=vector["shares"],
    )


def follow(vector):
    """Do what a vector says, step by step, and compare every byte with it."""
    vdaf, read = vdaf_of(vector), bytes.fromhex
    context, key, states = read(vector["ctx"]), read(vector["verify_key"]), {}
    accepted = {aggregator: [] for aggregator in range(vector["shares"])}
    for step in vector["operations"]:
        what, who, good = step["operation"], step.get("aggregator_id"), step["success"]
        if what in ("aggregate", "unshard"):
            continue
        report = vector["reports"][step["report_index"]]
        if what == "shard":
            made = vdaf.shard(
                context, report["measurement"], read(report["nonce"]), read(report["rand"])
            )
            assert made == (
                read(report["public_share"]),
                [read(each) for each in report["input_shares"]],
            )
        elif what == "verify_init":
            share = read(report["input_shares"][who])
            given = Report(read(report["nonce"]), read(report["public_share"]), share)
            state = vdaf.start(key, context, who, [given])
            assert bool(state.holds[0]) == good
            states[step["report_index"], who] = state
            assert state.verifier_shares == [read(report["verifier_shares"][0][who])]
        elif what == "verifier_shares_to_message":
            shares = [[read(each)] for each in report["verifier_shares"][0]]
            (message,), (holds,) = vdaf.combine(context, shares)
            assert bool(holds) == good
            assert not good or message == read(report["verifier_messages"][0])
        else:
            state = states[step["report_index"], who]
            (holds,) = vdaf.finish(state, [read(report["verifier_messages"][0])])
            assert bool(holds) == good
            if good:
                assert vdaf.field.encode(state.out_shares[0]) == read(report["out_shares"][who])
                accepted[who].append(state.out_shares[0])
    if vector["agg_result"] is None or not all(accepted.values()):
        return
    sums = [
        vdaf.add_up(np.stack(shares), np.ones(len(shares), np.bool_))
        for shares in accepted.values()
    ]
    assert [vdaf.field.encode(each) for each in sums] == [
        read(each) for each in vector["agg_shares"]
    ]
    result = vector["agg_result"]
    assert vdaf.unshard(sums) == (result if isinstance(result, list) else [result])


@pytest.mark.skipif(not NAMES, reason="the draft's test vectors are not here (../shared/vdaf)")
@pytest.mark.parametrize("name", NAMES)
def test_an_official_vector(name):
    follow(json.loads((OFFICIAL / f"{name}.json").read_text()))


@pytest.mark.parametrize("vector", json.loads(OWN.read_text()))
def test_our_own_vector(vector):
    follow(vector)


def test_a_vector_has_teeth():
    vector = json.loads(OWN.read_text())[0]
    vector["reports"][0]["measurement"] ^= 1
    with pytest.raises(AssertionError):
        follow(vector)


@pytest.mark.parametrize("modulus", [SMALL, LARGE])
def test_arithmetic_is_that_of_whole_numbers(modulus):
    field, draw = Field(modulus), random.Random(1)
    corners = [
        0,
        1,
        2,
        modulus - 1,
        modulus - 2,
        modulus // 2,
        2**64 % modulus,
        (2**64 - 1) % modulus,
    ]
    values = corners + [draw.randrange(modulus) for _ in range(40)]
    p, negated = field.words, field.negated_inverse
    for a in values:
        for b in values[:: 3 if a in corners else 7]:
            (a0, a1), (b0, b1) = field.vector([a])[0], field.vector([b])[0]
            factor = field.factors([a])[0]

            def whole(pair):
                return int(pair[0]) | int(pair[1]) << 64

            assert whole(add(p, a0, a1, b0, b1)) == (a + b) % modulus
            assert whole(subtract(p, a0, a1, b0, b1)) == (a - b) % modulus
            product = multiply(p, negated, factor[0], factor[1], b0, b1)
            assert whole(product) == a * b % modulus


@pytest.mark.parametrize(("length", "chunk"), [(1, 1), (3, 2), (5, 5), (6, 2), (9, 4)])
def test_proof_and_verifier_are_those_of_the_definition(length, chunk):
    draw, field = random.Random(length), Field(LARGE)
    circuit = proofs.make_circuit(field, length, chunk, True, 2)
    calls, n = -(-length // chunk), len(circuit.nodes)
    measurement = [0] * length
    measurement[draw.randrange(length)] = 1
    joint = [draw.randrange(LARGE) for _ in range(calls)]
    seeds = [draw.randrange(LARGE) for _ in range(2 * chunk)]
    proof = np.empty((2 * chunk + 2 * n - 1, 2), np.uint64)
    proofs.prove(
        circuit, field.vector(measurement), field.vector(seeds), field.vector(joint), proof
    )
    assert field.integers(proof) == oracle.prove(LARGE, measurement, joint, seeds, chunk)
    # A share of anything: the verifier's part is linear, and no share is valid by itself.
    share = [draw.randrange(LARGE) for _ in range(length)]
    part = [draw.randrange(LARGE) for _ in range(len(proof))]
    randomness = [draw.randrange(LARGE) for _ in range(3)]
    out, holds = np.empty((1, 2 * chunk + 2, 2), np.uint64), np.empty(1, np.bool_)
    given = [field.vector(each)[None] for each in (share, part, randomness, joint)]
    proofs.query(circuit, *given, out, holds)
    assert holds.all()
    wanted = oracle.query(LARGE, share, part, joint, randomness, chunk, 2)
    assert field.integers(out) == wanted


def played(vdaf, reports):
    """What both aggregators accept of (nonce, public share, shares), and the sums."""
    states = [
        vdaf.start(
            KEY, CONTEXT, who, [Report(n, public, shares[who]) for n, public, shares in reports]
        )
        for who in range(vdaf.shares)
    ]
    messages, holds = vdaf.combine(CONTEXT, [state.verifier_shares for state in states])
    accepted = holds & np.all([vdaf.finish(state, messages) for state in states], axis=0)
    return accepted, vdaf.unshard([vdaf.add_up(state.out_shares, accepted) for state in states])


def sharded(vdaf, measurement, draw, context=CONTEXT):
    nonce = draw.randbytes(16)
    public, shares = vdaf.shard(context, measurement, nonce, draw.randbytes(vdaf.random_size))
    return nonce, public, shares


@pytest.mark.parametrize(
    "vdaf", [Prio3(length=24), Prio3(length=7, shares=3), Prio3(histogram=False)]
)
def test_sums_come_out_and_any_change_is_rejected(vdaf):
    draw = random.Random(5)
    symbols = vdaf.length if vdaf.histogram else 2
    measurements = [draw.randrange(symbols) for _ in range(40)]
    reports = [sharded(vdaf, each, draw) for each in measurements]
    accepted, sums = played(vdaf, reports)
    assert accepted.all()
    counts = [measurements.count(symbol) for symbol in range(symbols)]
    assert sums == (counts if vdaf.histogram else [counts[1]])

    def flipped(bytes_, at):
        return bytes_[:at] + bytes([bytes_[at] ^ 1]) + bytes_[at + 1 :]

    for b in range(0, 40, 2):
        nonce, public, shares = reports[b]
        who = draw.randrange(vdaf.shares)
        changed = flipped(shares[who], draw.randrange(len(shares[who])))
        reports[b] = nonce, public, [changed if i == who else each for i, each in enumerate(shares)]
    accepted, _ = played(vdaf, reports)
    assert accepted.tolist() == [b % 2 == 1 for b in range(40)]


def test_one_bad_report_of_a_batch_is_rejected_alone():
    vdaf, draw = Prio3(length=6), random.Random(2)
    good = [sharded(vdaf, k % 6, draw) for k in range(8)]
    nonce, public, shares = good[0]
    reports = list(good)
    reports[1] = (nonce, public, [shares[0][:-1], shares[1]])
    reports[2] = (nonce[:-1], public, shares)
    reports[3] = (nonce, public + b"x", shares)
    reports[4] = (nonce, public, [b"\xff" * len(shares[0]), shares[1]])
    reports[5] = sharded(vdaf, 1, draw, context=b"another experiment")
    reports[6] = (good[7][0], public, shares)
    accepted, sums = played(vdaf, reports)
    assert accepted.tolist() == [True, False, False, False, False, False, False, True]
    assert sum(sums) == 2


def test_a_device_cannot_count_twice():
    """A vector with two 1s, or a 2, or a 1 and its negative: the proof is made as honestly as possible."""
    vdaf, draw, field = Prio3(length=6, chunk=2), random.Random(3), Field(LARGE)
    for vector in ([1, 1, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0], [0] * 6, [2, LARGE - 1, 0, 0, 0, 0]):
        found = []
        for _ in range(5):
            nonce, rand = draw.randbytes(16), draw.randbytes(vdaf.random_size)
            public, shares = _shard_vector(vdaf, field.vector(vector), nonce, rand)
            found += played(vdaf, [(nonce, public, shares)])[0].tolist()
        assert not any(found), vector
    honest = field.vector([0, 0, 1, 0, 0, 0])
    nonce, rand = draw.randbytes(16), draw.randbytes(vdaf.random_size)
    assert played(vdaf, [(nonce, *_shard_vector(vdaf, honest, nonce, rand))])[0].all()


def _shard_vector(vdaf, vector, nonce, rand):
    """Shard any vector, as a liar's client would, by the steps of the draft."""
    seeds = [rand[i : i + 32] for i in range(0, len(rand), 32)]
    key, blind, leader_blind, prove_seed = seeds
    share = vdaf._expand(vdaf._tag(1, CONTEXT), key, b"\x01", vdaf.length)
    leader = vector.copy()
    proofs.subtract_from(vdaf.field.words, leader, share)
    parts = [
        vdaf._joint_part(CONTEXT, 0, leader_blind, leader, nonce),
        vdaf._joint_part(CONTEXT, 1, blind, share, nonce),
    ]
    joint = vdaf._joint(CONTEXT, vdaf._joint_seed(CONTEXT, parts))
    n_proof, n_prove, _, _ = vdaf._lengths
    randomness = vdaf._expand(vdaf._tag(4, CONTEXT), prove_seed, b"\x01", n_prove)
    proof = np.empty((n_proof, 2), np.uint64)
    proofs.prove(vdaf.circuit, vector, randomness, joint, proof)
    other = vdaf._expand(vdaf._tag(2, CONTEXT), key, b"\x01\x01", n_proof)
    proofs.subtract_from(vdaf.field.words, proof, other)
    encode = vdaf.field.encode
    return b"".join(parts), [encode(leader) + encode(proof) + leader_blind, key + blind]


def test_the_upload_is_as_small_as_it_can_be():
    """At 24 cells at most 1.2 kB with ids and two seals of 48 bytes."""
    vdaf = Prio3(length=24)
    public, shares = vdaf.shard(CONTEXT, 3, bytes(16), bytes(vdaf.random_size))
    assert len(public) + sum(map(len, shares)) + 2 * 48 + 16 <= 1200
    for length in (1, 2, 5, 24, 96, 320):
        sizes = {}
        for chunk in range(1, length + 1):
            calls = -(-length // chunk)
            sizes[chunk] = 2 * chunk + 2 * (1 << calls.bit_length())
        assert sizes[best_chunk(length)] == min(sizes.values())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"length": 0}, "Prio3: expected length"),
        ({"length": 2, "histogram": False}, "Prio3: expected length"),
        ({"length": 4, "chunk": 0}, "Prio3: expected chunk"),
        ({"length": 4, "shares": 1}, "Prio3: expected shares"),
    ],
)
def test_what_cannot_be(words, message):
    with pytest.raises(ValueError, match=message):
        Prio3(**words)
    vdaf = Prio3(length=4)
    for measurement, nonce, size in ((4, 16, 128), (-1, 16, 128), (1, 15, 128), (1, 16, 127)):
        with pytest.raises(ValueError, match="shard: expected"):
            vdaf.shard(b"", measurement, bytes(nonce), bytes(size))
