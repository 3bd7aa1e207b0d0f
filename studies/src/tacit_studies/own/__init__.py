"""Studies that belong to no paper: what the policies of all of them are worth, side by side."""

from __future__ import annotations

from tacit_studies.own.identification import IDENTIFICATION
from tacit_studies.own.told_nothing import TOLD_NOTHING
from tacit_studies.own.trade_off import TRADE_OFF

__all__ = ["STUDIES"]

STUDIES = (TRADE_OFF, IDENTIFICATION, TOLD_NOTHING)
