"""Decisions as feature flags, by the protocol of OpenFeature."""

from __future__ import annotations

import json

from service.conftest import LOCAL
from tacit.device import Channel


def evaluate(service, path="/ofrep/v1/evaluate/flags/news", context=None, **headers):
    return service.http.post(
        path,
        json={"context": context or {}},
        headers={"authorization": f"Bearer {service.admin}", **headers},
    )


def test_one_flag_is_a_shown_decision(service):
    service.create(LOCAL, budget={"day": 1.0})
    flag = evaluate(service, context={"targetingKey": "ann"}).json()
    assert flag["key"] == "news"
    assert flag["value"] == flag["variant"]
    assert flag["value"] in LOCAL["options"]
    told = flag["metadata"]
    assert all(isinstance(value, str | int | float | bool) for value in told.values())
    assert Channel(json.loads(told["instructions"])).epsilon <= 1
    report = {"v": 1, "id": told["id"], "value": 1}
    assert (
        service.call("POST", "/v1/experiments/news/reports", report).json()["status"] == "learned"
    )
    spent = evaluate(service, context={"targetingKey": "ann"}).json()
    assert spent["reason"] == "BUDGET"
    assert "instructions" not in spent["metadata"]


def test_what_cannot_be_evaluated_says_why(service):
    service.create(LOCAL, budget={"day": 1.0})
    missing = evaluate(service, "/ofrep/v1/evaluate/flags/none")
    assert (missing.status_code, missing.json()["errorCode"]) == (404, "FLAG_NOT_FOUND")
    nobody = evaluate(service)
    assert (nobody.status_code, nobody.json()["errorCode"]) == (400, "TARGETING_KEY_MISSING")
    wrong = evaluate(service, context={"targetingKey": 5})
    assert (wrong.status_code, wrong.json()["errorCode"]) == (400, "INVALID_CONTEXT")


def test_all_flags_at_once_are_not_shown_and_come_with_a_tag(service):
    service.create(LOCAL)
    service.create(LOCAL, name="other")
    path = "/ofrep/v1/evaluate/flags"
    first = evaluate(service, path, {"targetingKey": "ann"})
    assert [flag["key"] for flag in first.json()["flags"]] == ["news", "other"]
    tag = first.headers["etag"]
    again = evaluate(service, path, {"targetingKey": "ann"}, **{"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")
    id = first.json()["flags"][0]["metadata"]["id"]
    unshown = {"v": 1, "id": id, "value": 1}
    assert service.call("POST", "/v1/experiments/news/reports", unshown).status_code == 409
    service.call("POST", f"/v1/experiments/news/decisions/{id}/shown")
    assert service.call("POST", "/v1/experiments/news/reports", unshown).status_code == 200
