"""Half the noise is found in every private policy of the registry; the whole noise is believed.

Every true claim is refuted by chance with probability 1e-5 at most, all of them together with one in a
thousand.
"""

from __future__ import annotations

import pytest

from battery.small_games import private_cases, small_game
from tacit.core.kernels import INTERPRETED

pytestmark = pytest.mark.skipif(
    INTERPRETED, reason="thousands of games; compiled and interpreted are compared elsewhere"
)
ALPHA = 1e-5
PAIRS = 3


@pytest.mark.slow
@pytest.mark.parametrize("case", private_cases(), ids=lambda case: case.name)
def test_half_the_noise_is_refuted_and_the_whole_is_not(case):
    game = small_game(case)
    terms = {"runs": game.enough, "alpha": ALPHA}
    cheat = game.audited(game.pairs(PAIRS), half=True, **terms)
    assert cheat.result.refuted, cheat.sentence()
    honest = game.audited([cheat.worst], seed=1, **terms)
    assert honest.result.verdict == "not refuted", honest.sentence()
