"""Studies that belong to no paper: what the policies of all of them are worth, side by side."""

from __future__ import annotations

from tacit_studies.extra.identification import IDENTIFICATION
from tacit_studies.extra.trade_off import TRADE_OFF
from tacit_studies.extra.unknown_similarity import UNKNOWN_SIMILARITY

__all__ = ["STUDIES"]

STUDIES = (TRADE_OFF, IDENTIFICATION, UNKNOWN_SIMILARITY)
