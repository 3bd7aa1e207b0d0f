"""Stock OpenFeature providers, and ours, with the real SDKs against the real service."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from clients.node import CLIENT, node
from tacit.device import Channel, Reporter

OPTIONS = ("red", "green", "blue")


@pytest.fixture(scope="module")
def flags(serving):
    serving.create("flag", 0.3)
    return serving


def is_decision(found):
    assert found["value"] in OPTIONS
    assert found["reason"] == "SPLIT"
    told = found["flagMetadata"]
    assert 0 < told["probability"] <= 1
    assert time.time() - 60 < told["report_at"] < time.time() + 60
    assert 0.99 < Channel(json.loads(told["instructions"])).epsilon <= 1
    return told["id"]


def is_refused(looked_up):
    assert looked_up["missing"]["errorCode"] == "FLAG_NOT_FOUND"
    assert looked_up["missing"]["value"] == "none"
    assert looked_up["wrong"]["errorCode"] == "TYPE_MISMATCH"


@pytest.fixture(scope="module")
def looked_up(flags, packages):
    """What the SDKs of JavaScript made of the flag."""
    done = node("tests/stock_providers.ts", flags.url, flags.token(), "flag")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_stock_provider_of_the_server_sdk(flags, looked_up):
    answer = looked_up["server"]
    is_refused(answer)
    assert answer["report"]["id"] == is_decision(answer["found"])
    receipt = flags.ask("POST", "/v1/experiments/flag/reports", answer["report"])
    assert receipt["status"] == "learned"


def test_the_stock_provider_of_the_web_sdk(looked_up):
    is_decision(looked_up["web"]["found"])
    is_refused(looked_up["web"])
    assert looked_up["web"]["statuses"] == [200, 304]


def test_tracking_with_our_provider_is_the_reward_and_nothing_else(flags, looked_up):
    seen = []
    for visit in ("clicked", "silent"):
        id = looked_up[visit]["found"]["flagMetadata"]["id"]
        mine = [sent for sent in flags.wire.posts("") if id in f"{sent.path}{sent.body}"]
        seen.append([sent.path.replace(id, "ID").rpartition("/experiments/")[2] for sent in mine])
        assert len(flags.wire.reports(id)) == 1
    assert seen[0] == seen[1] == ["flag/decisions", "flag/decisions/ID/shown", "flag/reports"]


def test_the_stock_provider_of_the_web_sdk_in_a_page(flags, packages, browser):
    """A page of another origin: the browser asks first what it may send."""
    esbuild = next(CLIENT.glob("node_modules/@esbuild/*/bin/esbuild"))
    bundle = flags.folder / "stock_web.js"
    command = [esbuild, "tests/stock_web.ts", "--bundle", "--format=esm", f"--outfile={bundle}"]
    subprocess.run(command, cwd=CLIENT, check=True, capture_output=True)
    flags.wire.pages = {
        "/page.html": b"<!doctype html><title>shop</title>",
        "/stock.js": bundle.read_bytes(),
    }
    page = browser.new_page()
    page.goto(f"{flags.origin}/page.html")
    call = "async args => (await import('/stock.js')).stockWeb(...args)"
    answer = page.evaluate(call, [flags.url, flags.token(flags.origin), "flag"])
    page.close()
    is_decision(answer["found"])
    is_refused(answer)
    assert answer["statuses"] == [200, 304]


def test_the_stock_provider_for_python(flags):
    api = pytest.importorskip("openfeature.api")
    from openfeature.contrib.provider.ofrep import OFREPProvider
    from openfeature.evaluation_context import EvaluationContext

    headers = {"authorization": f"Bearer {flags.token()}"}
    api.set_provider(OFREPProvider(flags.url, headers_factory=lambda: headers))
    client, dora = api.get_client(), EvaluationContext(targeting_key="dora")
    found = client.get_string_details("flag", "none", dora)
    missing = client.get_string_details("missing", "none", dora)
    wrong = client.get_boolean_details("flag", False, dora)
    api.shutdown()
    is_refused({"missing": vars_of(missing), "wrong": vars_of(wrong)})
    id = is_decision({**vars_of(found), "flagMetadata": dict(found.flag_metadata)})
    asked = json.loads(found.flag_metadata["instructions"])
    report = Reporter(asked, id=id, max_epsilon=1.0).report(1.0)
    assert flags.ask("POST", "/v1/experiments/flag/reports", report)["status"] == "learned"


def vars_of(details):
    code = details.error_code
    return {
        "value": details.value,
        "reason": str(details.reason),
        "errorCode": None if code is None else code.value,
    }
