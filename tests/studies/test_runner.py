"""Reproductions: the same numbers however they are run, kept when killed, skipped without data."""

import dataclasses
import json
import math
import os

import pytest

from tacit_studies import (
    Figure,
    Panel,
    Series,
    last_findings,
    papers,
    reproduce,
    reproductions,
)
from tacit_studies.estimates import summarise
from tacit_studies.reproduction import Findings, Job, Reproduction, Row

CALLS = "TACIT_TEST_CALLS"


def square(x):
    """A job that leaves a mark each time it is really done."""
    if marks := os.environ.get(CALLS):
        with open(marks, "a") as file:
            file.write(f"{x}\n")
    if x == 13:
        raise RuntimeError("unlucky")
    return x * x


def judged(outcomes, quick):
    total = sum(outcomes.values())
    return Findings(
        verdict="reproduced" if total == 14 else "not reproduced",
        because=f"the sum is {total}",
        rows=[Row("sum", "14", str(total), agrees=total == 14)],
        agreement="The sums are equal.",
    )


def study(*numbers, needs=(), name="squares"):
    return Reproduction(
        name=name,
        paper="999",
        title="t",
        question="q",
        claim="c",
        jobs=lambda quick: [Job(f"x{x}", square, {"x": x}) for x in numbers],
        judge=judged,
        needs=needs,
    )


def test_workers_do_not_matter(tmp_path):
    one = reproduce([study(1, 2, 3)], tmp_path / "one", workers=1)[0].findings
    two = reproduce([study(1, 2, 3)], tmp_path / "two", workers=2)[0].findings
    assert one == two
    assert one.verdict == "reproduced"


def test_verdict_follows_the_numbers(tmp_path):
    assert reproduce([study(1, 2)], tmp_path, workers=1)[0].findings.verdict == "not reproduced"


def test_finished_jobs_are_not_done_again(tmp_path, monkeypatch):
    marks = tmp_path / "marks"
    monkeypatch.setenv(CALLS, str(marks))
    with pytest.raises(RuntimeError, match="unlucky"):
        reproduce([study(1, 2, 13)], tmp_path / "out", workers=1)
    told = []
    reproduce(
        [study(1, 2, 3)], tmp_path / "out", workers=1, progress=lambda a, b: told.append((a, b))
    )
    assert marks.read_text().split() == ["1", "2", "13", "3"]
    assert told[0] == (2, 3)


def test_last_findings_are_read_back_full_before_quick(tmp_path):
    chosen = study(1, 2, 3)
    assert last_findings(chosen, tmp_path) is None
    reproduce([chosen], tmp_path, quick=True, workers=1)
    assert last_findings(chosen, tmp_path).quick
    done = reproduce([chosen], tmp_path, quick=False, workers=1)[0]
    last = last_findings(chosen, tmp_path)
    assert not last.quick
    assert last.findings == done.findings
    assert json.loads((tmp_path / "squares-full.json").read_text())["findings"]["verdict"]


def test_findings_are_json_and_read_back_with_what_json_has_no_word_for(tmp_path):
    odd = [1.0, math.nan, math.inf, -math.inf]
    curve = Series("a", [1.0, 2.0, 3.0, 4.0], odd, odd, odd, dashed=True)
    panel = Panel("p", [1.0], odd, [odd], curve)
    figure = Figure("f", "x", "y", [curve], kind="map", panels=[panel], value_label="v")
    given = Findings(verdict="partly", because="b", rows=[Row("r", "", "1")], figures=[figure])

    text = json.dumps(given.to_dict(), allow_nan=False)
    assert json.loads(text)["figures"][0]["series"][0]["y"] == [1.0, "nan", "inf", "-inf"]
    assert repr(Findings.from_dict(json.loads(text))) == repr(given)
    with pytest.raises(ValueError, match="not JSON compliant"):
        json.dumps(dataclasses.asdict(given), allow_nan=False)

    chosen = dataclasses.replace(study(1), judge=lambda *_: given)
    reproduce([chosen], tmp_path, workers=1)
    assert repr(last_findings(chosen, tmp_path).findings) == repr(given)


def test_findings_say_what_agreement_means():
    rows = [Row("plain", "", "1"), Row("change along epsilon", "-4.8", "+0.0", agrees=True)]
    with pytest.raises(ValueError, match="what it means that 'change along epsilon' agrees"):
        Findings(verdict="partly", because="b", rows=rows)
    said = Findings(verdict="partly", because="b", rows=rows, agreement="Within 5 points.")
    assert Findings.from_dict(said.to_dict()) == said
    assert Findings(verdict="partly", because="b", rows=rows[:1]).agreement == ""


def test_findings_of_the_first_version_are_still_read():
    old = Findings(
        verdict="partly", because="b", rows=[Row("r", "", "1", agrees=True)], agreement="x"
    )
    data = old.to_dict()
    del data["agreement"]
    data["rows"][0].pop("within")
    assert Findings.from_dict(data).rows == old.rows


def test_without_data_a_study_is_skipped_and_the_rest_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    skipped, done = reproduce(
        [study(1, needs=("no-such-set",), name="absent"), study(1, 2, 3)],
        tmp_path / "out",
        workers=1,
    )
    assert skipped.skipped
    assert skipped.findings.verdict == "cannot be decided"
    assert "TACIT_DATA" in skipped.findings.because
    assert done.findings.verdict == "reproduced"


def test_every_study_is_well_described():
    for name, each in reproductions().items():
        assert name == each.name
        assert each.question.endswith("?"), name
        assert each.claim.endswith("."), name
        assert each.own or each.paper, name
        assert "Tacit" not in each.claim, name
        for quick in (True, False):
            jobs = each.jobs(quick)
            keys = [job.key for job in jobs]
            assert len(set(keys)) == len(keys) > 0, name
            for job in jobs:
                json.dumps(dict(job.arguments))


def test_summaries_know_their_error():
    summary = summarise([1.0, 2.0, 3.0])
    assert summary.mean == 2.0
    assert summary.error == pytest.approx(1 / 3**0.5)
    assert summary.low < 2.0 < summary.high


# Findings of versions 0.1 and 0.2 are found under the paper's number.
def test_findings_of_an_older_version_are_read(tmp_path):
    old, new = study(1, 2, 3, name="002-squares"), study(1, 2, 3, name="lu2022-squares")
    found = reproduce([old], tmp_path, workers=1)[0].findings
    last = last_findings(new, tmp_path)
    assert last is not None
    assert (last.findings, last.reproduction) == (found, new)


def test_papers_are_called_by_author_and_year():
    assert [paper.name for paper in papers()] == [
        "odeyomi2022",
        "tao2022",
        "lu2022",
        "gajane2023",
        "wang2020",
    ]
    for name, each in reproductions().items():
        assert name.startswith(each.paper), name
        assert all(word not in name for word in ("000", "001", "002", "003", "004")), name


@pytest.mark.parametrize("word", ["gajane2023-changes", "003-changes"])
def test_the_numbers_of_papers_are_understood(word, tmp_path, monkeypatch, capsys):
    from tacit_studies import command

    chosen = []
    monkeypatch.setattr(
        "tacit_studies.reproduce", lambda studies, *_, **__: chosen.extend(studies) or []
    )
    monkeypatch.setattr(command, "_write_report", lambda *_: tmp_path)
    command.reproduce([word], out=tmp_path)
    assert [each.name for each in chosen] == ["gajane2023-changes"]
    command.reproduce([word.partition("-")[0]], out=tmp_path)
    assert {each.paper for each in chosen} == {"gajane2023"}
    assert len(chosen) > 10
