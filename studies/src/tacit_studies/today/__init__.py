"""What is possible today: published, corrected and new policies side by side, problem by problem.

``python -m tacit_studies.today docs/choosing.md`` measures all of it, or what is left of it, and writes the
tables of the page "Which policy should I use?".
"""

from __future__ import annotations

from tacit_studies.paper import Paper
from tacit_studies.today.contests import CENTRAL, CHANGING, LOCAL, POPULATIONS, USERS

__all__ = ["PAPER"]

PAPER = Paper(
    name="today",
    short="What is possible",
    title="What is possible today",
    cited="",
    question=(
        "Papers are years old when they are measured again. What should somebody use who begins now, "
        "and how much better is it than what the papers propose?"
    ),
    method=(
        "For each of five problems, what was published, what was corrected and what is new, on the "
        "same tables and at the same epsilon, unit and trust, over epsilon, time, size and kind of "
        "world. The constants of the new policies were partly chosen on some of these worlds, not on "
        "these seeds. Where a new policy is behind, the row says so."
    ),
    studies=(CENTRAL, LOCAL, CHANGING, USERS, POPULATIONS),
    own=True,
)
