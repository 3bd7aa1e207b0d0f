"""What is fixed for an experiment beside its policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tacit.core.constraints import Count, Whole, check, one_of, require
from tacit.core.decider import Decider
from tacit.serving.core.budget import Allowance

MODES = ("learn", "frozen", "shadow", "off")
_DAY = 86_400_000


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
    """What is fixed for an experiment beside its policy; times in milliseconds.

    Parameters
    ----------
    report_after : int, optional
        How long after a decision is shown its report is due. None: whenever it comes.
    grace : int
        How long after that a report still counts.
    retention : int
        How long a decision is remembered after it was closed.
    default : float, optional
        The reward that stands for a missing one; the lowest unless given.
    max_open : int
        More open decisions than this are refused.
    allowances : tuple of Allowance
        What may be spent on one person.
    mode : {"learn", "frozen", "shadow", "off"}
        At the start.
    baseline : int
        The option that is served in the modes ``shadow`` and ``off``.
    """

    report_after: Whole | None = None
    grace: Whole = 60_000
    retention: Whole = 30 * _DAY
    default: float | None = None
    max_open: Count = 100_000
    allowances: tuple[Allowance, ...] = ()
    mode: Annotated[str, one_of(*MODES)] = "learn"
    baseline: Whole = 0

    def __post_init__(self) -> None:
        check(self)


def require_mode(decider: Decider, mode: str) -> None:
    """Raise ``ValueError`` unless a policy can be in this mode."""
    require("experiment", "mode", f"one of {', '.join(MODES)}", mode in MODES, mode)
    if mode == "shadow":
        own = decider.n_options is not None
        why = decider.not_explored or ("" if own else "options come with each decision")
        require("experiment", "mode", f"another one: {why}", not why, mode)
