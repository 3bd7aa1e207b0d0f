"""The study of identification: what was cut off at the limit is no result."""

from tacit_studies import reproductions

LIMIT = 3_000_000


def judged(slow, named):
    """Judge outcomes where every run took 1,000 rounds, but for one job of which `named` say an arm."""
    study = reproductions()["identification"]
    outcomes = {}
    for job in study.jobs(False):
        n = job.arguments["repetitions"]
        outcomes[job.key] = {"rounds": [1000] * n, "named": [1.0] * n, "wrong": [0.0] * n}
    n = len(outcomes[slow]["rounds"])
    outcomes[slow] = {
        "rounds": [2_000_000] * named + [LIMIT] * (n - named),
        "named": [1.0] * named + [0.0] * (n - named),
        "wrong": [0.0] * n,
    }
    return study.judge(outcomes, False)


def test_runs_that_name_no_arm_are_counted_and_not_averaged():
    # Finding N6: '3e+06 ± 0' was printed, and 2,200 runs were counted of which some named no arm.
    found = judged("two/top-two-cf/0.1", named=0)
    measured = {row.label: row.measured for row in found.rows}
    label = "an A/B test, means .5 and .55, local: each bit is randomized, epsilon = 0.1: rounds"
    assert measured[label] == "not decided in 3,000,000 (100 of 100 runs)"
    assert "of 2,100 runs that named an arm 0 named a wrong one" in found.because
    assert "100 others were not decided in 3,000,000 rounds" in found.because
    local = found.figures[0].series[1]
    assert 0.1 not in local.x
    assert len(local.x) == len(local.y) == 4


def test_a_mean_that_was_cut_off_says_at_least():
    # Finding N6
    found = judged("five/top-two-cf/0.1", named=60)
    measured = {row.label: row.measured for row in found.rows}
    label = "five arms, means .3 to .6, local: each bit is randomized, epsilon = 0.1: rounds"
    assert measured[label].startswith("at least 2,400,000 ± ")
    assert measured[label].endswith("not decided in 3,000,000 (40 of 100 runs)")
    assert all("not decided" not in text for other, text in measured.items() if other != label)
