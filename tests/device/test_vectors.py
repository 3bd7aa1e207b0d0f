"""The vectors are what the code does, and vectors and examples are what the schemas say."""

from __future__ import annotations

import copy
import json

import pytest
from jsonschema import Draft202012Validator, ValidationError
from referencing import Registry, Resource

from device.exactness import ROOT, make_vectors, stored_vectors
from tacit.device import Channel, Reporter

SCHEMAS = {
    path.name: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "schemas").glob("*.schema.json"))
    if path.name in {"instructions.schema.json", "report.schema.json", "test-vector.schema.json"}
}
REGISTRY = Registry().with_resources(
    (name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
)
VECTORS = stored_vectors()
REPORTS = {name: [one for one in found if "report" in one] for name, found in VECTORS.items()}


def validator(name):
    return Draft202012Validator(SCHEMAS[name], registry=REGISTRY)


def check(one):
    """Follow a vector; raise AssertionError unless its report comes out of its bytes."""
    rest = bytes.fromhex(one["random"])

    def random(n):
        nonlocal rest
        drawn, rest = rest[:n], rest[n:]
        return drawn

    reporter = Reporter(
        one["instructions"], id=one["report"]["id"], max_epsilon=None, random=random
    )
    assert reporter.report(one["reward"]) == one["report"]
    assert rest == b""
    if one["epsilon"] is None:
        assert reporter.epsilon == float("inf")
    else:
        assert reporter.epsilon == pytest.approx(one["epsilon"], rel=1e-12, abs=0)


@pytest.mark.parametrize("name", [name for name, found in REPORTS.items() if found])
def test_every_vector_is_met(name):
    for one in REPORTS[name]:
        check(one)


def test_a_changed_vector_is_noticed():
    one = copy.deepcopy(REPORTS["k-ary.json"][0])
    one["random"] = one["random"][:-14] + "1fffffffffffff"
    with pytest.raises((AssertionError, ValueError)):
        check(one)


@pytest.mark.parametrize("name", VECTORS)
def test_the_files_are_what_the_script_writes(name):
    make = make_vectors()
    assert (ROOT / "vectors" / name).read_text(encoding="utf-8") == make.text(make.files()[name])


def test_every_file_is_there():
    assert set(VECTORS) == set(make_vectors().files())
    assert sum(map(len, REPORTS.values())) > 400
    kinds = {one["instructions"]["answer"]["kind"] for found in REPORTS.values() for one in found}
    assert kinds == {"table", "window", "subset", "unary", "noise", "identity"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_holds_its_examples(name):
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert len(SCHEMAS[name]["examples"]) >= 2
    for example in SCHEMAS[name]["examples"]:
        validator(name).validate(example)


def test_the_examples_are_followed():
    for example in SCHEMAS["instructions.schema.json"]["examples"]:
        report = Reporter(example, id="d", max_epsilon=None).report(0.5)
        validator("report.schema.json").validate(report)
    followed, refused = SCHEMAS["test-vector.schema.json"]["examples"]
    check(followed)
    with pytest.raises(ValueError, match="weights"):
        Channel(refused["instructions"])


@pytest.mark.parametrize("name", VECTORS)
def test_every_vector_fits_its_schema(name):
    for one in VECTORS[name]:
        validator("test-vector.schema.json").validate(one)


def test_what_a_schema_refuses_a_device_refuses_too():
    told_by_schema = 0
    for one in VECTORS["refused.json"]:
        fits = validator("instructions.schema.json").is_valid(one["instructions"])
        told_by_schema += not fits
        with pytest.raises(ValueError, match=r"^instructions: "):
            Channel(one["instructions"])
    # The rest are rules between numbers.
    assert told_by_schema >= 40


def test_a_report_with_more_is_no_report():
    with pytest.raises(ValidationError):
        validator("report.schema.json").validate({"v": 1, "id": "d", "value": 1, "reward": 1.0})
