"""The proof of Prio3: that a shared vector is one bit, or has a single 1, without telling which.

One circuit serves both. It is zero where every entry is 0 or 1 and, for a histogram, the entries add up to 1.
A verifier cannot multiply shares, so the client proves the products: wires and products are polynomials
through roots of unity, and the verifiers compare them at one random point (VDAF, section 7.3, in the Lagrange
basis). The kernels of a verifier take many reports at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.aggregation.field import LARGE, SMALL, Field, Vector, add, multiply, subtract
from tacit.core.kernels import kernel


class Circuit(NamedTuple):
    """What the kernels need of a circuit."""

    p: Vector
    """Shape (2,): the modulus."""
    negated: Any
    """Minus the modulus' inverse modulo 2^64."""
    square: Vector
    """Shape (2,): 2^256, which makes a factor of an element."""
    length: int
    """C, the entries of a measurement."""
    chunk: int
    """L, the products of one call of the gadget."""
    histogram: bool
    """Whether entries add up to 1; otherwise the measurement is one bit."""
    share_of_one: Vector
    """Shape (2,): 1 / shares, each share's part of a constant 1."""
    nodes: Vector
    """Shape (P, 2): roots of unity as factors, on which wires are given."""
    double_nodes: Vector
    """Shape (2 P, 2): those of the products."""
    weight: Vector
    """Shape (2,): 1 / P as a factor."""
    double_weight: Vector
    """Shape (2,): 1 / (2 P) as a factor."""
    between: Vector
    """Shape (P, P, 2): factors that give a wire at the odd ones of the double nodes."""
    last: Vector
    """Shape (2 P - 1, 2): factors that give the last product from the others, whose degree is 2 P - 2."""


def make_circuit(field: Field, length: int, chunk: int, histogram: bool, shares: int) -> Circuit:
    """Return the circuit for measurements of `length` entries, `chunk` of them in one call."""
    q = field.modulus
    calls = -(-length // chunk)
    P = 1 << calls.bit_length()
    nodes, double = field.roots(P), field.roots(2 * P)
    between = []
    for point in double[1::2]:
        top = (pow(point, P, q) - 1) * pow(P, -1, q)
        between += [top * node * pow(point - node, -1, q) for node in nodes]
    # The coefficient of x^(2P-1) is the mean of value * node; it is 0, which gives the last value.
    last = [-double[1] * node for node in double[:-1]]
    return Circuit(
        field.words,
        field.negated_inverse,
        field.square,
        length,
        chunk,
        histogram,
        field.vector([pow(shares, -1, q)])[0],
        field.factors(nodes),
        field.factors(double),
        field.factors([pow(P, -1, q)])[0],
        field.factors([pow(2 * P, -1, q)])[0],
        field.factors(between).reshape(P, P, 2),
        field.factors(last),
    )


SMALL_FIELD, LARGE_FIELD = Field(SMALL), Field(LARGE)


@kernel
def _copy(to: Any, element: Any) -> None:
    to[0], to[1] = element[0], element[1]


@kernel
def _times(circuit: Any, factor: Any, element: Any) -> Any:
    """Return the product of a factor (times 2^128) and an element (as it is)."""
    return multiply(circuit.p, circuit.negated, factor[0], factor[1], element[0], element[1])


@kernel
def _fill_wires(
    circuit: Any, measurement: Any, joint: Any, seeds: Any, one: Any, wires: Any
) -> None:
    """Write the inputs of each call after the seeds: r^j x and x - 1 for a histogram, x and x for a bit."""
    L, p, negated = circuit.chunk, circuit.p, circuit.negated
    wires[:] = 0
    for j in range(2 * L):
        _copy(wires[j, 0], seeds[j])
    if not circuit.histogram:
        _copy(wires[0, 1], measurement[0])
        _copy(wires[1, 1], measurement[0])
        return
    calls = -(-circuit.length // L)
    for i in range(calls):
        r0, r1 = multiply(
            p, negated, joint[i, 0], joint[i, 1], circuit.square[0], circuit.square[1]
        )
        power0, power1 = r0, r1
        for j in range(L):
            x0, x1 = np.uint64(0), np.uint64(0)
            if i * L + j < circuit.length:
                x0, x1 = measurement[i * L + j, 0], measurement[i * L + j, 1]
            low, high = multiply(p, negated, power0, power1, x0, x1)
            wires[2 * j, i + 1, 0], wires[2 * j, i + 1, 1] = low, high
            low, high = subtract(p, x0, x1, one[0], one[1])
            wires[2 * j + 1, i + 1, 0], wires[2 * j + 1, i + 1, 1] = low, high
            power0, power1 = multiply(p, negated, power0, power1, r0, r1)


@kernel
def _sum_of_products(circuit: Any, row: Any) -> Any:
    """Return the gadget: the sum of the products of neighbouring entries."""
    p, negated, square = circuit.p, circuit.negated, circuit.square
    total0, total1 = np.uint64(0), np.uint64(0)
    for j in range(circuit.chunk):
        low, high = multiply(
            p, negated, row[2 * j, 0], row[2 * j, 1], row[2 * j + 1, 0], row[2 * j + 1, 1]
        )
        low, high = multiply(p, negated, low, high, square[0], square[1])
        total0, total1 = add(p, total0, total1, low, high)
    return total0, total1


@kernel(allocates=True)
def prove(circuit: Any, measurement: Any, randomness: Any, joint: Any, proof: Any) -> None:
    """Write a proof: the seeds of the wires, then the products at all double nodes but the last."""
    L, P = circuit.chunk, circuit.nodes.shape[0]
    wires = np.empty((2 * L, P, 2), np.uint64)
    one = np.zeros(2, np.uint64)
    one[0] = 1
    _fill_wires(circuit, measurement, joint, randomness, one, wires)
    row = np.empty((2 * L, 2), np.uint64)
    for j in range(2 * L):
        _copy(proof[j], wires[j, 0])
    for k in range(P):
        for j in range(2 * L):
            _copy(row[j], wires[j, k])
        low, high = _sum_of_products(circuit, row)
        proof[2 * L + 2 * k, 0], proof[2 * L + 2 * k, 1] = low, high
        if k == P - 1:
            break
        for j in range(2 * L):
            total0, total1 = np.uint64(0), np.uint64(0)
            for i in range(P):
                low, high = _times(circuit, circuit.between[k, i], wires[j, i])
                total0, total1 = add(circuit.p, total0, total1, low, high)
            row[j, 0], row[j, 1] = total0, total1
        low, high = _sum_of_products(circuit, row)
        proof[2 * L + 2 * k + 1, 0], proof[2 * L + 2 * k + 1, 1] = low, high


@kernel
def _basis(circuit: Any, nodes: Any, weight: Any, t0: Any, t1: Any, out: Any, work: Any) -> Any:
    """Write the Lagrange basis at the point t as factors; return whether t is none of the nodes.

    The basis at t is node / n times the product of (t - other node), by products from either side.
    """
    p, negated, n = circuit.p, circuit.negated, nodes.shape[0]
    left0, left1 = weight[0], weight[1]
    for i in range(n):
        out[i, 0], out[i, 1] = left0, left1
        d0, d1 = subtract(p, t0, t1, nodes[i, 0], nodes[i, 1])
        work[i, 0], work[i, 1] = d0, d1
        left0, left1 = multiply(p, negated, left0, left1, d0, d1)
    right0, right1 = nodes[0, 0], nodes[0, 1]
    for i in range(n - 1, -1, -1):
        low, high = multiply(p, negated, out[i, 0], out[i, 1], right0, right1)
        low, high = multiply(p, negated, low, high, nodes[i, 0], nodes[i, 1])
        out[i, 0], out[i, 1] = low, high
        right0, right1 = multiply(p, negated, right0, right1, work[i, 0], work[i, 1])
    return left0 != 0 or left1 != 0


@kernel(allocates=True)
def query(
    circuit: Any, measurements: Any, proofs: Any, randomness: Any, joints: Any, out: Any, holds: Any
) -> None:
    """Write each report's share of the verifier, and whether its random point can be used.

    Rows of `out`: the circuit's output, the wires at the random point, the products there.
    """
    p, negated, square = circuit.p, circuit.negated, circuit.square
    L, P = circuit.chunk, circuit.nodes.shape[0]
    calls = -(-circuit.length // L)
    wires = np.empty((2 * L, P, 2), np.uint64)
    products = np.empty((2 * P, 2), np.uint64)
    basis, work = np.empty((2 * P, 2), np.uint64), np.empty((2 * P, 2), np.uint64)
    for b in range(measurements.shape[0]):
        proof, measurement = proofs[b], measurements[b]
        _fill_wires(circuit, measurement, joints[b], proof, circuit.share_of_one, wires)
        total0, total1 = np.uint64(0), np.uint64(0)
        for i in range(2 * P - 1):
            _copy(products[i], proof[2 * L + i])
            low, high = _times(circuit, circuit.last[i], products[i])
            total0, total1 = add(p, total0, total1, low, high)
        products[2 * P - 1, 0], products[2 * P - 1, 1] = total0, total1
        # The circuit's output: the products of all calls, which are 0 for bits; then the sum, which is 1.
        v0, v1 = np.uint64(0), np.uint64(0)
        for i in range(calls):
            v0, v1 = add(p, v0, v1, products[2 * i + 2, 0], products[2 * i + 2, 1])
        point = 0
        if circuit.histogram:
            s0, s1 = subtract(
                p, np.uint64(0), np.uint64(0), circuit.share_of_one[0], circuit.share_of_one[1]
            )
            for i in range(circuit.length):
                s0, s1 = add(p, s0, s1, measurement[i, 0], measurement[i, 1])
            low, high = multiply(
                p, negated, randomness[b, 0, 0], randomness[b, 0, 1], square[0], square[1]
            )
            v0, v1 = multiply(p, negated, low, high, v0, v1)
            low, high = multiply(
                p, negated, randomness[b, 1, 0], randomness[b, 1, 1], square[0], square[1]
            )
            low, high = multiply(p, negated, low, high, s0, s1)
            v0, v1 = add(p, v0, v1, low, high)
            point = 2
        else:
            v0, v1 = subtract(p, v0, v1, measurement[0, 0], measurement[0, 1])
        out[b, 0, 0], out[b, 0, 1] = v0, v1
        t0, t1 = multiply(
            p, negated, randomness[b, point, 0], randomness[b, point, 1], square[0], square[1]
        )
        holds[b] = _basis(circuit, circuit.nodes, circuit.weight, t0, t1, basis, work)
        for j in range(2 * L):
            total0, total1 = np.uint64(0), np.uint64(0)
            for i in range(P):
                low, high = _times(circuit, basis[i], wires[j, i])
                total0, total1 = add(p, total0, total1, low, high)
            out[b, 1 + j, 0], out[b, 1 + j, 1] = total0, total1
        _basis(circuit, circuit.double_nodes, circuit.double_weight, t0, t1, basis, work)
        total0, total1 = np.uint64(0), np.uint64(0)
        for i in range(2 * P):
            low, high = _times(circuit, basis[i], products[i])
            total0, total1 = add(p, total0, total1, low, high)
        out[b, 1 + 2 * L, 0], out[b, 1 + 2 * L, 1] = total0, total1


@kernel
def decide(circuit: Any, verifiers: Any, holds: Any) -> None:
    """Write which verifiers, all shares added up, belong to a valid measurement."""
    L = circuit.chunk
    for b in range(verifiers.shape[0]):
        row = verifiers[b]
        low, high = _sum_of_products(circuit, row[1:])
        zero = row[0, 0] == 0 and row[0, 1] == 0
        holds[b] = zero and low == row[1 + 2 * L, 0] and high == row[1 + 2 * L, 1]


@kernel
def add_rows(p: Any, total: Any, rows: Any, chosen: Any) -> None:
    """Add the chosen rows of elements to `total`."""
    for b in range(rows.shape[0]):
        if chosen[b]:
            for i in range(total.shape[0]):
                low, high = add(p, total[i, 0], total[i, 1], rows[b, i, 0], rows[b, i, 1])
                total[i, 0], total[i, 1] = low, high


@kernel
def subtract_from(p: Any, total: Any, other: Any) -> None:
    """Subtract one vector of elements from another, in place."""
    for i in range(total.shape[0]):
        low, high = subtract(p, total[i, 0], total[i, 1], other[i, 0], other[i, 1])
        total[i, 0], total[i, 1] = low, high
