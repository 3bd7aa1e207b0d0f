"""Prio3 (VDAF draft 20, section 7): one report becomes shares that add up, with a proof that it is valid.

A client splits a measurement among two or more aggregators. Each of them alone sees random numbers. Together
they check the proof and add up shares of the reports that pass. Only the sums are ever put together. `Prio3`
has the two instances that Tacit needs: one bit (Prio3Count) and one of C symbols (Prio3Histogram).

Verification works on batches. A report that is malformed or whose proof fails is rejected alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from Crypto.Hash import TurboSHAKE128
from numpy.typing import NDArray

from tacit.aggregation import proofs
from tacit.aggregation.field import Field, Vector
from tacit.aggregation.proofs import LARGE_FIELD, SMALL_FIELD, Circuit, make_circuit
from tacit.core.constraints import require

SEED = 32
NONCE = 16
#: Version of the wire format, the first byte of every domain separation tag.
VERSION = 18
(_MEASUREMENT, _PROOF, _JOINT, _PROVE, _QUERY, _JOINT_SEED, _JOINT_PART) = range(1, 8)


class Report(NamedTuple):
    """What an aggregator gets of one report."""

    nonce: bytes
    public_share: bytes
    input_share: bytes


class Verification(NamedTuple):
    """What an aggregator keeps of a batch between the two steps of its verification."""

    out_shares: Vector
    """Shape (reports, C, 2): the shares to be added up."""
    seeds: list[bytes]
    """The joint randomness seed of each report as this aggregator knows it; empty for Prio3Count."""
    verifier_shares: list[bytes]
    """What is sent to the aggregator that combines."""
    holds: NDArray[np.bool_]
    """Shape (reports,): which reports were well formed."""


@dataclass(frozen=True, kw_only=True)
class Prio3:
    """Split, verify and add up reports of one kind.

    Parameters
    ----------
    length : int, default 1
        C, the number of symbols of a histogram; with `histogram` false, 1.
    chunk : int, optional
        L, how many entries one step of the proof checks; by default the one with the smallest upload.
    histogram : bool, default True
        Whether a measurement is one of C symbols (Prio3Histogram) or one bit (Prio3Count).
    shares : int, default 2
        Number of aggregators.

    Examples
    --------
    >>> vdaf = Prio3(length=4)
    >>> public, shares = vdaf.shard(b"shop", 2, bytes(16), bytes(range(128)))
    >>> len(public), [len(share) for share in shares]
    (64, [272, 64])
    """

    length: int = 1
    chunk: int | None = None
    histogram: bool = True
    shares: int = 2

    def __post_init__(self) -> None:
        require(self, "length", ">= 1, and 1 for a bit", self._has_length, self.length)
        require(self, "chunk", ">= 1", self.chunk is None or self.chunk >= 1, self.chunk)
        require(self, "shares", "in 2..255", 2 <= self.shares <= 255, self.shares)

    @property
    def _has_length(self) -> bool:
        return self.length >= 1 if self.histogram else self.length == 1 and self.chunk in (None, 1)

    @property
    def field(self) -> Field:
        """The field of its elements."""
        return LARGE_FIELD if self.histogram else SMALL_FIELD

    @cached_property
    def circuit(self) -> Circuit:
        """What the kernels need."""
        chunk = self.chunk or best_chunk(self.length)
        return make_circuit(self.field, self.length, chunk, self.histogram, self.shares)

    @cached_property
    def _lengths(self) -> tuple[int, int, int, int]:
        """Return how many elements a proof, its randomness, the query and the joint randomness have."""
        L, P = self.circuit.chunk, len(self.circuit.nodes)
        calls = -(-self.length // L)
        return (
            (2 * L + 2 * P - 1, 2 * L, 3, calls)
            if self.histogram
            else (2 * L + 2 * P - 1, 2 * L, 1, 0)
        )

    @property
    def random_size(self) -> int:
        """How many random bytes a report needs."""
        return SEED * self.shares * (2 if self.histogram else 1)

    @property
    def verifier_size(self) -> int:
        """How many bytes a share of a verifier has."""
        return self.field.size * (2 * self.circuit.chunk + 2) + (SEED if self.histogram else 0)

    def _tag(self, usage: int, context: bytes) -> bytes:
        """Return the beginning of what is hashed for a usage, up to the seed."""
        tag = bytes([VERSION, 0, 0, 0, 0, 4 if self.histogram else 1, 0, usage]) + context
        return len(tag).to_bytes(2, "little") + tag + bytes([SEED])

    def _expand(self, tag: bytes, seed: bytes, binder: bytes, n: int) -> Vector:
        """Return n elements, drawn by rejection from the stream of a seed."""
        stream = _turbo_shake(tag + seed + binder)
        drawn, fits = self.field.decode(stream.read(n * self.field.size))
        while not fits.all():
            missing = stream.read((n - int(fits.sum())) * self.field.size)
            more, more_fit = self.field.decode(missing)
            drawn, fits = np.concatenate([drawn[fits], more]), np.r_[fits[fits], more_fit]
        return drawn

    def _expand_all(self, tag: bytes, seeded: Sequence[tuple[bytes, bytes]], n: int) -> Vector:
        """Return n elements of each stream, given by seed and binder; shape (streams, n, 2)."""
        size = n * self.field.size
        drawn = b"".join(_turbo_shake(tag + seed + binder).read(size) for seed, binder in seeded)
        rows, fits = self.field.decode(drawn)
        rows = rows.reshape(len(seeded), n, 2)
        for b in np.flatnonzero(~fits.reshape(len(seeded), n).all(axis=1)).tolist():
            rows[b] = self._expand(tag, *seeded[b], n)
        return rows

    def shard(
        self, context: bytes, measurement: int, nonce: bytes, random: bytes
    ) -> tuple[bytes, list[bytes]]:
        """Split a measurement: return the public share, and the share of each aggregator.

        Parameters
        ----------
        context : bytes
            What the report is for; shares made for one context do not verify under another.
        measurement : int
            The symbol, or the bit.
        nonce : bytes
            16 bytes, public and different for each report.
        random : bytes
            `random_size` secret bytes, used once.
        """
        symbols = self.length if self.histogram else 2
        require(
            "shard", "measurement", f"in 0..{symbols - 1}", 0 <= measurement < symbols, measurement
        )
        require("shard", "nonce", f"of {NONCE} bytes", len(nonce) == NONCE, len(nonce))
        wanted = self.random_size
        require("shard", "random", f"of {wanted} bytes", len(random) == wanted, len(random))
        seeds = [random[i : i + SEED] for i in range(0, len(random), SEED)]
        n_proof, n_prove, _, _ = self._lengths
        vector = np.zeros((self.length, 2), np.uint64)
        vector[measurement if self.histogram else 0, 0] = 1 if self.histogram else measurement
        step = 2 if self.histogram else 1
        keys = seeds[0 : step * (self.shares - 1) : step]
        blinds = [seeds[-2], *seeds[1 : 2 * (self.shares - 1) : 2]] if self.histogram else []
        leader = vector.copy()
        parts: list[bytes] = []
        for j, key in enumerate(keys, start=1):
            share = self._expand(self._tag(_MEASUREMENT, context), key, bytes([j]), self.length)
            proofs.subtract_from(self.field.words, leader, share)
            if blinds:
                parts.append(self._joint_part(context, j, blinds[j], share, nonce))
        joint = np.zeros((0, 2), np.uint64)
        if blinds:
            parts.insert(0, self._joint_part(context, 0, blinds[0], leader, nonce))
            joint = self._joint(context, self._joint_seed(context, parts))
        randomness = self._expand(self._tag(_PROVE, context), seeds[-1], b"\x01", n_prove)
        proof = np.empty((n_proof, 2), np.uint64)
        proofs.prove(self.circuit, vector, randomness, joint, proof)
        for j, key in enumerate(keys, start=1):
            share = self._expand(self._tag(_PROOF, context), key, bytes([1, j]), n_proof)
            proofs.subtract_from(self.field.words, proof, share)
        shares = [self.field.encode(leader) + self.field.encode(proof), *keys]
        if blinds:
            shares = [share + blind for share, blind in zip(shares, blinds, strict=True)]
        return b"".join(parts), shares

    def _joint_part(
        self, context: bytes, aggregator: int, blind: bytes, share: Vector, nonce: bytes
    ) -> bytes:
        binder = bytes([aggregator]) + nonce + self.field.encode(share)
        return _turbo_shake(self._tag(_JOINT_PART, context) + blind + binder).read(SEED)

    def _joint_seed(self, context: bytes, parts: Sequence[bytes]) -> bytes:
        message = self._tag(_JOINT_SEED, context) + bytes(SEED) + b"".join(parts)
        return _turbo_shake(message).read(SEED)

    def _joint(self, context: bytes, seed: bytes) -> Vector:
        return self._expand(self._tag(_JOINT, context), seed, b"\x01", self._lengths[3])

    def start(
        self, key: bytes, context: bytes, aggregator: int, reports: Sequence[Report]
    ) -> Verification:
        """Begin to verify a batch at one aggregator.

        Parameters
        ----------
        key : bytes
            32 secret bytes that all aggregators share and no client knows.
        context : bytes
            As the clients used it.
        aggregator : int
            0 for the leader, then 1, 2, ...
        reports : sequence of Report
            What this aggregator got.
        """
        require("start", "key", f"of {SEED} bytes", len(key) == SEED, len(key))
        n_proof, _, n_query, n_joint = self._lengths
        n, C, size = len(reports), self.length, self.field.size
        share_size = (C + n_proof) * size if aggregator == 0 else SEED
        sizes = NONCE, SEED * self.shares * self.histogram, share_size + SEED * self.histogram
        holds = np.array([tuple(map(len, report)) == sizes for report in reports], np.bool_)
        # A malformed report is replaced by zeros, which go the same way and are not accepted.
        given = [
            report if formed else tuple(map(bytes, sizes))
            for report, formed in zip(reports, holds, strict=True)
        ]
        who = bytes([aggregator])
        if aggregator == 0:
            elements, fits = self.field.decode(
                b"".join(share[:share_size] for _, _, share in given)
            )
            elements = elements.reshape(n, C + n_proof, 2)
            holds &= fits.reshape(n, -1).all(axis=1)
            elements[~holds] = 0
            measurements, shares = elements[:, :C], elements[:, C:]
        else:
            pairs = [(share[:SEED], who) for _, _, share in given]
            measurements = self._expand_all(self._tag(_MEASUREMENT, context), pairs, C)
            pairs = [(seed, b"\x01" + who) for seed, _ in pairs]
            shares = self._expand_all(self._tag(_PROOF, context), pairs, n_proof)
        asked = [(key, b"\x01" + nonce) for nonce, _, _ in given]
        randomness = self._expand_all(self._tag(_QUERY, context), asked, n_query)
        seeds, parts = [b""] * n, [b""] * n
        joints = np.zeros((n, n_joint, 2), np.uint64)
        if self.histogram:
            written = self.field.encode(measurements)
            tag, seed_tag = self._tag(_JOINT_PART, context), self._tag(_JOINT_SEED, context)
            at, step = SEED * aggregator, C * size
            for b, (nonce, public, share) in enumerate(given):
                binder = who + nonce + written[b * step : (b + 1) * step]
                part = _turbo_shake(tag + share[share_size:] + binder).read(SEED)
                all_parts = public[:at] + part + public[at + SEED :]
                parts[b] = part
                seeds[b] = _turbo_shake(seed_tag + bytes(SEED) + all_parts).read(SEED)
            pairs = [(seed, b"\x01") for seed in seeds]
            joints = self._expand_all(self._tag(_JOINT, context), pairs, n_joint)
        usable = np.zeros(n, np.bool_)
        verifiers = np.zeros((n, 2 * self.circuit.chunk + 2, 2), np.uint64)
        proofs.query(self.circuit, measurements, shares, randomness, joints, verifiers, usable)
        written, step = self.field.encode(verifiers), verifiers.shape[1] * size
        sent = [written[b * step : (b + 1) * step] + parts[b] for b in range(n)]
        return Verification(measurements, seeds, sent, holds & usable)

    def combine(
        self, context: bytes, shares: Sequence[Sequence[bytes]]
    ) -> tuple[list[bytes], NDArray[np.bool_]]:
        """Put the shares of verifiers together, the leader's first.

        Returns the message that each aggregator gets about each report, and which proofs hold.
        """
        n, size = len(shares[0]), self.verifier_size - (SEED if self.histogram else 0)
        verifiers = np.zeros((n, 2 * self.circuit.chunk + 2, 2), np.uint64)
        formed = np.ones(n, np.bool_)
        for each in shares:
            for b, share in enumerate(each):
                formed[b] &= len(share) == self.verifier_size
            joined = b"".join(
                share[:size] if good else bytes(size)
                for share, good in zip(each, formed, strict=True)
            )
            rows, fits = self.field.decode(joined)
            formed &= fits.reshape(n, -1).all(axis=1)
            flat = verifiers.reshape(1, -1, 2)
            proofs.add_rows(self.field.words, flat[0], rows[None], np.ones(1, np.bool_))
        holds = np.zeros(n, np.bool_)
        proofs.decide(self.circuit, verifiers, holds)
        messages = [b""] * n
        if self.histogram:
            for b in range(n):
                if formed[b] and holds[b]:
                    messages[b] = self._joint_seed(context, [each[b][size:] for each in shares])
        return messages, holds & formed

    def finish(self, verification: Verification, messages: Sequence[bytes]) -> NDArray[np.bool_]:
        """Return which reports this aggregator accepts, given the combined messages."""
        pairs = zip(verification.seeds, messages, strict=True)
        alike = np.array([seed == message for seed, message in pairs], np.bool_)
        return verification.holds & alike

    def add_up(self, out_shares: Vector, accepted: NDArray[np.bool_]) -> Vector:
        """Return the sum of the accepted shares, of shape (C, 2)."""
        total = np.zeros((self.length, 2), np.uint64)
        proofs.add_rows(self.field.words, total, out_shares, accepted)
        return total

    def unshard(self, shares: Sequence[Vector]) -> list[int]:
        """Return the sums of all measurements from the sums of every aggregator's shares."""
        total = np.zeros((self.length, 2), np.uint64)
        every = np.ones(len(shares), np.bool_)
        proofs.add_rows(self.field.words, total, np.stack(list(shares)), every)
        return self.field.integers(total)


def best_chunk(length: int) -> int:
    """Return the chunk with the smallest upload: one that wastes no padding.

    Examples
    --------
    >>> [best_chunk(C) for C in (6, 24, 96, 320)]
    [2, 8, 14, 22]
    """

    def size(chunk: int) -> int:
        calls = -(-length // chunk)
        return 2 * chunk + 2 * (1 << calls.bit_length())

    most = length.bit_length()
    return min((-(-length // ((1 << k) - 1)) for k in range(1, most + 1)), key=size)


def _turbo_shake(message: bytes) -> _Stream:
    return TurboSHAKE128.new(data=message, domain=1)


class _Stream(Protocol):
    """What a hash returns: bytes without end."""

    def read(self, n: int, /) -> bytes: ...
