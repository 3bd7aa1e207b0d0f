"""For every private policy of the registry a game so small that an audit can judge its noise."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from battery.cases import Case, cases, less_private
from tacit.contextual import FedUCB, Fitted, PrivateContexts, Synthetic
from tacit.core.policy import Environment, Policy
from tacit.diffusion import ChangingTruth
from tacit.dynamics import SocialOptions
from tacit.graphs import complete
from tacit.privacy import NeighbouringPair, SearchResult
from tacit.simulation.audits import audit_policy, neighbours_of, releasing_horizon
from tacit.simulation.policy_checks import play

ONE_AGENT = complete(1)
ONE_FEATURE = Synthetic(n_users=1, dimension=1, n_items=1, n_shown=1)
ONE_VISIT = Fitted(n_users=1, dimension=2, n_items=1, n_shown=1, n_groups=1)
VISIBLE = 0.05
"""Of a guarantee with a smaller delta that many runs would not show, its word at this one is tried."""
LONG = 100
"""In longer games decisions are not looked at: they follow from what was released."""


@dataclass(frozen=True)
class Game:
    """A policy with its claim, and what it is audited on."""

    case: Case
    environment: Environment
    policy: Policy
    horizon: int

    @property
    def unit(self) -> str:
        return self.policy.guarantee(self.horizon).unit

    @property
    def claim(self) -> tuple[float, float]:
        """Epsilon and delta as the guarantee states them, at a delta that an audit can see."""
        guarantee = self.policy.guarantee(self.horizon)
        if 0 < guarantee.delta < VISIBLE:
            guarantee = guarantee.at(VISIBLE)
        return guarantee.epsilon, guarantee.delta

    @property
    def enough(self) -> int:
        """How many runs find half the noise: more where a delta blurs what is released."""
        return 20_000 if self.claim[1] > 0 else 8_000 if self.horizon < LONG else 4_000

    def pairs(self, limit: int) -> list[NeighbouringPair]:
        return neighbours_of(self.environment, self.horizon, unit=self.unit, limit=limit)

    def audited(
        self, pairs: list[NeighbouringPair], *, half: bool = False, share: float = 1.0, **terms: Any
    ) -> SearchResult:
        """Audit a share of the claim on `pairs`: of the policy, or of its twin with half the noise."""
        epsilon, delta = self.claim
        return audit_policy(
            less_private(self.policy) if half else self.policy,
            self.environment,
            horizon=self.horizon,
            epsilon=share * epsilon,
            delta=delta,
            neighbours=pairs,
            decisions=self.horizon < LONG,
            **terms,
        )


def private_cases() -> list[Case]:
    """Return the cases of the registry that state a finite epsilon, and not 0."""
    found = []
    for case in cases():
        guarantee = case.easy(1)[1].guarantee(1)
        if guarantee.private and 0 < guarantee.epsilon < math.inf:
            found.append(case)
    return found


def small_game(case: Case) -> Game:
    """Return the game on which a case is audited."""
    return _SMALL[case.kind.setting](case)


def _arms(case: Case) -> Game:
    environment, horizon = case.setting.easy(case.kind), 4
    if play(case.build(environment, horizon), environment, horizon).tape.reads[1] == 0:
        horizon = releasing_horizon(lambda rounds: case.build(environment, rounds), environment)
    return Game(case, environment, case.build(environment, horizon), horizon)


def _users(case: Case) -> Game:
    if case.kind in (PrivateContexts, FedUCB):
        return Game(case, ONE_VISIT, case.build(ONE_VISIT, 1), 1)
    kind = case.parameters.get("privacy", {"kind": "residual"})["kind"]
    horizon = {"published": 1, "noisy-sums": 2}.get(kind, 3)
    return Game(case, ONE_FEATURE, case.build(ONE_FEATURE, horizon), horizon)


def _diffusion(case: Case) -> Game:
    environment = ChangingTruth(n_states=2, network=ONE_AGENT)
    policy: Any = case.build(environment, case.rounds)
    block = policy.rounds_per_report  # which the twin must not choose for itself
    return Game(case, environment, dataclasses.replace(policy, block=block), block)


def _dynamics(case: Case) -> Game:
    environment = SocialOptions(qualities=(0.9, 0.5, 0.1), network=ONE_AGENT)
    return Game(case, environment, case.build(environment, 1), 1)


_SMALL = {"arms": _arms, "users": _users, "diffusion": _diffusion, "dynamics": _dynamics}
