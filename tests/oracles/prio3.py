"""Prio3 by its definition: whole numbers, interpolation by Lagrange's formula, one report at a time.

It knows nothing of encodings: it takes what a report is made of (measurement, proof, randomness as whole
numbers) and says what each polynomial is at each point.
"""

from __future__ import annotations

from math import prod


def interpolate(p, xs, ys, at):
    """The value at a point of the polynomial through given points."""
    total = 0
    for i, x in enumerate(xs):
        others = [z for j, z in enumerate(xs) if j != i]
        above = prod((at - z) % p for z in others)
        below = prod((x - z) % p for z in others)
        total += ys[i] * above * pow(below, -1, p)
    return total % p


def roots(p, n):
    """The powers of a primitive n-th root of unity, found from the generator 7."""
    root = pow(7, (p - 1) // n, p)
    # The order of 7^((p-1)/n) is n itself only if 7 generates; check it rather than believe it.
    assert pow(root, n, p) == 1
    assert n == 1 or pow(root, n // 2, p) != 1
    return [pow(root, k, p) for k in range(n)]


def wires_of(p, measurement, joint, seeds, chunk, one):
    """The inputs of every call of the gadget, wire by wire, the seed first."""
    calls = -(-len(measurement) // chunk)
    padded = [*measurement, *([0] * (calls * chunk - len(measurement)))]
    wires = [[seed] for seed in seeds]
    for i in range(calls):
        for j in range(chunk):
            x = padded[i * chunk + j]
            wires[2 * j].append(pow(joint[i], j + 1, p) * x % p)
            wires[2 * j + 1].append((x - one) % p)
    n = 1
    while n < calls + 1:
        n *= 2
    return [wire + [0] * (n - len(wire)) for wire in wires]


def prove(p, measurement, joint, seeds, chunk):
    """The proof of a histogram: seeds, and the gadget's polynomial at all 2n-th roots but the last."""
    wires = wires_of(p, measurement, joint, seeds, chunk, 1)
    n = len(wires[0])
    points = roots(p, 2 * n)
    values = []
    for at in points[:-1]:
        here = [interpolate(p, points[::2], wire, at) for wire in wires]
        values.append(sum(here[2 * j] * here[2 * j + 1] for j in range(chunk)) % p)
    return [*seeds, *values]


def query(p, measurement, proof, joint, randomness, chunk, shares):
    """One share of the verifier of a histogram."""
    one = pow(shares, -1, p)
    wires = wires_of(p, measurement, joint, proof[: 2 * chunk], chunk, one)
    n = len(wires[0])
    points, values = roots(p, 2 * n), proof[2 * chunk :]
    calls = -(-len(measurement) // chunk)
    outputs = [interpolate(p, points[:-1], values, points[2 * k]) for k in range(1, calls + 1)]
    range_check, sum_check = sum(outputs), sum(measurement) - one
    v = (randomness[0] * range_check + randomness[1] * sum_check) % p
    t = randomness[2]
    at = [interpolate(p, points[::2], wire, t) for wire in wires]
    return [v, *at, interpolate(p, points[:-1], values, t)]
