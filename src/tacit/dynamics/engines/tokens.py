"""Tokens one by one: which of them travel, dealt at random, or walked hop by hop.

A token's hops are draws under the token's own name, (round, origin and number, hop): whoever holds
it can draw the next one, in the simulator and on a device of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.compiled import kernel
from tacit.generator import to_unit
from tacit.networks.walks import metropolis_step
from tacit.tapes import ARRIVE, DEAL, LOSE, WALK
from tacit.variates import binomial, block

__all__ = ["arrivals", "deal", "deliver", "deliver_all", "hop", "level_of", "walk"]

_LOW16, _LOW24 = np.uint64(0xFFFF), np.uint64(0xFFFFFF)
_U1, _U16, _U40 = np.uint64(1), np.uint64(16), np.uint64(40)


@kernel(inlined=False)
def arrivals(rule: Any, source: Any, t: Any, d: Any, N: Any, a: Any, flying: Any) -> Any:
    """Return how many of `flying` tokens, sent d rounds ago, travel now and how many of them last.

    Delays are uniform on 0, ..., `delay`, so a token that has waited d rounds goes with
    probability 1 / (delay + 1 - d).
    """
    going = binomial(source, ARRIVE, t, d * N + a, flying, 1.0 / (rule.delay + 1 - d))
    return going, binomial(source, LOSE, t, d * N + a, going, 1.0 - rule.loss)


@kernel
def level_of(rule: Any, who: Any) -> Any:
    """Return which of the levels of epsilon an agent has; a division saved where there is one."""
    return who % rule.weight.size if rule.weight.size > 1 else 0


@kernel
def deliver(rule: Any, mail: Any, b: Any, sent: Any, c: Any, level: Any) -> None:
    """Give agent b c tokens of a perturbed vector of a level, or put them by if it is not here."""
    row = b - mail.first
    if row < 0 or row >= mail.got.size:
        k = mail.away[0]
        mail.away_to[k] = b
        mail.away_sent[k] = sent
        mail.away_count[k] = c
        mail.away_level[k] = level
        mail.away[0] = k + 1
        return
    weight = c * rule.weight[level]
    undone = weight * (rule.slope[level] / rule.slope[0])
    mail.got[row] += weight
    mail.lifted[row] += weight * (rule.offset[level] - rule.offset[0])
    received = mail.received[row]
    for j in range(received.size):
        received[j] += undone if (sent >> np.uint64(j)) & _U1 != 0 else 0.0


@kernel
def deliver_all(rule: Any, mail: Any, to: Any, sent: Any, count: Any, level: Any) -> None:
    """Give agents here what came from elsewhere."""
    for k in range(to.size):
        deliver(rule, mail, to[k], sent[k], count[k], level[k])


@kernel(inlined=False)
def deal(
    rule: Any, source: Any, t: Any, d: Any, N: Any, a: Any, n: Any, sent: Any, mail: Any
) -> None:
    """Give each of n tokens of agent a to a uniformly random agent."""
    w0, w1, w2, w3 = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    for k in range(n):
        if k & 3 == 0:
            w0, w1, w2, w3 = block(source, DEAL, t, d * N + a, k >> 2)
        b = int(to_unit(w0) * N)
        w0, w1, w2, w3 = w1, w2, w3, w0
        deliver(rule, mail, b, sent, 1, level_of(rule, a))


@kernel
def hop_words(source: Any, t: Any, d: Any, token: Any, made: Any) -> Any:
    """Return the words of four hops of a token, `made` among them, d rounds late."""
    return block(source, WALK, t, token, (d << 14) | (made >> 2))


@kernel
def hop(
    source: Any, t: Any, d: Any, token: Any, made: Any, indptr: Any, indices: Any, a: Any
) -> Any:
    """Return where a token goes from agent a by eq. (2), after `made` hops, d rounds late."""
    words = hop_words(source, t, d, token, made)
    word = words[0]
    if made & 3 == 1:
        word = words[1]
    elif made & 3 == 2:
        word = words[2]
    elif made & 3 == 3:
        word = words[3]
    return metropolis_step(indptr, indices, a, to_unit(word))


@kernel(allocates=True)
def walk(rule: Any, source: Any, t: Any, messages: Any, table: Any, mail: Any) -> Any:
    """Walk every launched token by eq. (2); return messages sent and time slots taken.

    In a slot an agent forwards the first `rule.tokens` tokens of its queue. Staying costs no message.
    """
    launched = mail.launched
    W, N = launched.shape
    alive = 0
    for row in range(W):
        for a in range(N):
            alive += launched[row, a]
    # A token is (index of its message, where it is, hops left) in 24, 24 and 16 bits, a number, and
    # the words of its next hops: a block has four.
    queue, moved = np.empty((alive, 5), np.uint64), np.empty((alive, 5), np.uint64)
    k = 0
    for row in range(W):
        for a in range(N):
            token = (np.uint64(row * N + a) << _U40) | (np.uint64(a) << _U16) | np.uint64(rule.walk)
            for i in range(launched[row, a]):
                queue[k, 0], queue[k, 1] = token, np.uint64(i)
                k += 1
    used = np.zeros(N, np.int64)
    sent, slots = 0, 0
    while alive > 0:
        used[:] = 0
        waiting, moving = 0, 0
        for k in range(alive):
            token, i, w0, w1, w2 = queue[k, 0], queue[k, 1], queue[k, 2], queue[k, 3], queue[k, 4]
            here = int((token >> _U16) & _LOW24)
            if used[here] >= rule.tokens:
                _put(queue, waiting, token, i, w0, w1, w2)
                waiting += 1
                continue
            used[here] += 1
            index, left = token >> _U40, token & _LOW16
            made = rule.walk - int(left)
            word = w0
            if made & 3 == 0:
                row, origin = int(index) // N, int(index) % N
                name = origin * rule.tokens + int(i)
                word, w0, w1, w2 = hop_words(source, t, (t - row) % W, name, made)
            else:
                w0, w1 = w1, w2
            there = metropolis_step(table.indptr, table.indices, here, to_unit(word))
            sent += there != here
            if left == _U1:
                origin = int(index) % N
                level = level_of(rule, origin)
                deliver(rule, mail, there, messages[int(index) // N, origin], 1, level)
            else:
                token = (index << _U40) | (np.uint64(there) << _U16) | (left - _U1)
                _put(moved, moving, token, i, w0, w1, w2)
                moving += 1
        for k in range(moving):
            for column in range(5):
                queue[waiting + k, column] = moved[k, column]
        alive = waiting + moving
        slots += 1
    return sent, slots


@kernel
def _put(tokens: Any, k: Any, token: Any, number: Any, w0: Any, w1: Any, w2: Any) -> None:
    tokens[k, 0], tokens[k, 1] = token, number
    tokens[k, 2], tokens[k, 3], tokens[k, 4] = w0, w1, w2
