"""What a simulation returns: measures at checkpoints, one row a repetition."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.policy import AnyEnvironment, AnyPolicy
from tacit.privacy import Guarantee
from tacit.simulation.bands import Band, band_of
from tacit.simulation.result_tables import CellResult, Tabular


@dataclass(frozen=True, kw_only=True)
class Result(Tabular):
    """The repetitions of one policy in one environment.

    It has a table form (`frame`, `table`), a picture (`plot`) and shows itself in a notebook.

    Parameters
    ----------
    policy, environment : the descriptions that were run
    horizon, seed : int
    repetitions : array of int
        The numbers of the repetitions, in order.
    checkpoints : array of int, shape (C,)
        Numbers of rounds played.
    measures : mapping of name to array of shape (repetitions, C)
    noise_draws : array of int
        How many draws of privacy noise each repetition read from its tape.
    numerics : str
        ``research``: seeded floating point; never a deployment's privacy.
    traces : list
        The whole traces, if they were asked for.
    """

    policy: AnyPolicy
    environment: AnyEnvironment
    horizon: int
    seed: int
    repetitions: NDArray[np.int64]
    checkpoints: NDArray[np.int64]
    measures: Mapping[str, NDArray[np.float64]]
    noise_draws: NDArray[np.int64]
    numerics: str = "research"
    traces: list[Any] = field(default_factory=list, repr=False, compare=False)

    @property
    def guarantee(self) -> Guarantee:
        """What the policy protects over this horizon."""
        return self.policy.guarantee(self.horizon)

    def final(self, measure: str) -> NDArray[np.float64]:
        """Return the last value of `measure` in every repetition."""
        return self.measures[measure][:, -1]

    def band(self, measure: str) -> Band:
        """Return mean and 95% band of `measure` at every checkpoint."""
        return band_of(self.measures[measure])

    @property
    def title(self) -> str:
        """The policy in the environment."""
        return f"{self.policy.name} in {self.environment.name}"

    @property
    def shown(self) -> tuple[CellResult, ...]:
        """The one cell."""
        return (self.as_cell(self.policy.name),)

    def as_cell(self, label: str, varied: Mapping[str, Any] | None = None) -> CellResult:
        """Return the result as a cell of a comparison or a study."""
        return CellResult(
            label=label,
            name=self.policy.name,
            policy=repr(self.policy),
            environment=repr(self.environment),
            horizon=self.horizon,
            varied=dict(varied or {}),
            guarantee=json.loads(self.guarantee.to_json()),
            numerics=self.numerics,
            checkpoints=self.checkpoints,
            measures=self.measures,
        )
