"""The study of private contexts, published and corrected: its verdict follows the numbers."""

import pytest

from tacit_studies import reproductions
from tacit_studies.wang2020.federated import find_noise_epsilon, tell_apart


def judged(shares, spoke):
    study = reproductions()["wang2020-federated"]
    outcomes = {}
    for job in study.jobs(False):
        what, _, rest = job.key.partition("/")
        if what == "spoke":
            outcomes[job.key] = [spoke[rest]] * 20
        else:
            outcomes[job.key] = [shares[what] + i / 1000 for i in range(10)]
    return study.judge(outcomes, False)


SHARES = {
    "not private": 0.01,
    "FedUCB, published": 0.9,
    "FedUCB, corrected": 0.1,
    "everybody alone": 0.3,
}
SPOKE = {"FedUCB, published": 1.0, "FedUCB, corrected": 0.0}


@pytest.mark.parametrize(
    ("shares", "spoke", "words"),
    [
        ({}, {}, "As expected: "),
        ({}, {"FedUCB, corrected": 0.5}, "Partly as expected: "),
        ({"FedUCB, corrected": 0.95}, {}, "Partly as expected: "),
    ],
)
def test_the_verdict_follows_the_numbers(shares, spoke, words):
    found = judged(SHARES | shares, SPOKE | spoke)
    assert found.because.startswith(words)
    if not shares and not spoke:
        assert "in 100% of histories" in found.because


def test_when_agents_speak_tells_a_visit_as_published_alone():
    assert sum(tell_apart({"name": "fed-ucb", "variant": "published"}, 4)) > 0
    assert tell_apart({"name": "fed-ucb"}, 4) == [0.0] * 4


def test_the_published_noise_is_worth_far_less_than_is_claimed():
    # mu = 2 sqrt(levels) / scale, and delta(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu).
    from scipy.stats import norm

    from tacit.contextual.policies.fed_ucb import published_scale

    found = find_noise_epsilon(2.0, 40_000)
    mu = 2 * 16**0.5 / published_scale(2.0, 1e-6, 40_000)
    delta = norm.cdf(mu / 2 - found / mu) - norm.sf(mu / 2 + found / mu) * 2.718281828459045**found
    assert delta == pytest.approx(1e-6, rel=1e-3)
    assert 0.05 < found < 0.3
