"""Studies that belong to no paper: what the policies of all of them are worth, side by side."""

from __future__ import annotations

from tacit.papers.own.identification import IDENTIFICATION
from tacit.papers.own.told_nothing import TOLD_NOTHING
from tacit.papers.own.trade_off import TRADE_OFF

__all__ = ["STUDIES"]

STUDIES = (TRADE_OFF, IDENTIFICATION, TOLD_NOTHING)
