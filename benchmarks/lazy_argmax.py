"""What the lazy argmax gains: kl-UCB and SW-KLUCB-CF with every index solved in every round, and as they are.

python benchmarks/lazy_argmax.py
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import tacit
from tacit.arms import KLUCB, SWKLUCBCF, Bernoulli
from tacit.arms.klucb_index import level, solve_index
from tacit.arms.policies import klucb as plain
from tacit.arms.policies import sw_klucb_cf as windowed
from tacit.arms.table import reward
from tacit.arms.trace import record
from tacit.core.kernels import kernel
from tacit.core.tapes import CHOICE, uniform

K, T, REPETITIONS = 10, 20_000, 10
learn_windowed = SWKLUCBCF.kernels.learn


@kernel
def eager(rule: Any, ends: Any, state: Any, tape: Any, t: Any, f: Any) -> Any:
    """Return the arm with the largest of all indices; ties are drawn, the latest arm first."""
    latest, ties, q = state.lazy.latest[0], 0, -1.0
    for i in range(-1, state.counts.size):
        a = latest if i < 0 else i
        if i == latest:
            continue
        N = state.counts[a]
        mean = min(1.0, max(0.0, state.sums[a] / N)) if N > 0 else 0.0
        index = solve_index(ends, 0, N, mean, f)
        if index > q:
            q, ties = index, 0
        if index == q:
            state.lazy.tied[ties] = a
            ties += 1
    arm = state.lazy.tied[int(uniform(tape, t, 0, CHOICE) * ties) if ties > 1 else 0]
    state.lazy.latest[0] = arm
    return arm


@kernel
def run_plain(
    rule: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any
) -> None:
    """Play kl-UCB with every index solved."""
    for t in range(first, last):
        arm = plain.first_untried(state, table.all_arms) if state.untried[0] > 0 else -1
        if arm < 0:
            arm = eager(rule, rule.feedback.ends, state, tape, t, level(rule.exploration, float(t)))
        state.lazy.latest[0] = arm
        value = reward(table, t, arm)
        record(table, trace, t, arm, value)
        plain.learn(rule, state, tape, t, arm, value)


@kernel
def run_windowed(
    rule: Any, state: Any, table: Any, tape: Any, trace: Any, first: Any, last: Any
) -> None:
    """Play SW-KLUCB-CF with every index solved."""
    for t in range(first, last):
        windowed.forget(rule, state, state.window, t)
        arm = plain.first_untried(state, table.all_arms) if state.untried[0] > 0 else -1
        if arm < 0:
            f = rule.level if rule.window <= t else level(rule.exploration, float(t))
            arm = eager(rule, rule.feedback.ends, state, tape, t, f)
        state.lazy.latest[0] = arm
        value = reward(table, t, arm)
        record(table, trace, t, arm, value)
        learn_windowed(rule, state, tape, t, arm, value)


class EagerKLUCB(KLUCB):
    """kl-UCB without the trick."""

    run = run_plain


class EagerSWKLUCBCF(SWKLUCBCF):
    """SW-KLUCB-CF without the trick."""

    run = run_windowed


def main() -> None:
    """Print rounds a second of CPU time of both, the best of three, and that decisions are the same."""
    where = Bernoulli(means=tuple(np.linspace(0.9, 0.1, K).tolist()))
    window: dict[str, Any] = {"horizon": T, "window": 1000}
    for lazy, whole in (
        (KLUCB(n_arms=K), EagerKLUCB(n_arms=K)),
        (SWKLUCBCF(n_arms=K, **window), EagerSWKLUCBCF(n_arms=K, **window)),
        (
            SWKLUCBCF(n_arms=K, epsilon=1.0, **window),
            EagerSWKLUCBCF(n_arms=K, epsilon=1.0, **window),
        ),
    ):
        rates, regrets = [], []
        for policy in (lazy, whole):
            given: dict[str, Any] = {"horizon": T, "repetitions": REPETITIONS, "threads": 1}
            regrets.append(tacit.simulate(policy, where, **given).final("regret"))
            seconds = []
            for _ in range(3):
                begun = time.process_time()
                tacit.simulate(policy, where, **given)
                seconds.append(time.process_time() - begun)
            rates.append(REPETITIONS * T / min(seconds))
        same = "the same decisions" if np.array_equal(*regrets) else "OTHER DECISIONS"
        private = "" if getattr(lazy, "epsilon", None) is None else ", epsilon 1"
        print(
            f"{lazy.name}{private}: {rates[0] / 1e6:.1f} million rounds/s, all solved {rates[1] / 1e6:.1f}: "
            f"{rates[0] / rates[1]:.1f} times; {same}"
        )


if __name__ == "__main__":
    main()
