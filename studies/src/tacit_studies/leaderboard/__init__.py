"""What is possible today: published, corrected and new policies side by side, problem by problem.

``python -m tacit_studies.leaderboard docs/choosing.md`` measures all of it, or what is left of it, and writes
the tables of the page "Which policy should I use?".
"""

from __future__ import annotations

from tacit_studies.leaderboard.contests import CENTRAL, CHANGING, LOCAL, POPULATIONS, USERS
from tacit_studies.paper import introduce

__all__ = ["PAPER"]

PAPER = introduce("leaderboard", CENTRAL, LOCAL, CHANGING, USERS, POPULATIONS)
