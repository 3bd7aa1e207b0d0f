"""The real client in a real browser against the real service, and everything that goes wrong on the way.

Whatever happens, two decisions go through it side by side: one is clicked, the other is not. The
wire must see the same of both.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from tiers import tiered

BUNDLE = Path(__file__).parents[2] / "src/tacit/demo/pages/client.js"
AFTER = 0.8
PAGE = """<!doctype html><title>shop</title><script type="module">
import { createClient } from "/client.js";
window.open = (options) => { window.tacit = createClient(options); };
window.visit = async (click) => {
  const decision = await tacit.decide();
  const owed = await tacit.shown(decision);
  if (click) await tacit.reward(decision, 1);
  return { ...decision, owed };
};
</script>"""
WORKER = """import { createClient } from "/client.js";
const options = JSON.parse(new URL(location).searchParams.get("options"));
self.addEventListener("periodicsync", (event) => event.waitUntil(createClient(options).flush()));
self.addEventListener("activate", (event) => event.waitUntil(clients.claim()));
"""
NO_INDEXED_DB = "indexedDB.open = () => { throw new DOMException('refused', 'SecurityError'); };"
NO_LOCAL_STORAGE = """Object.defineProperty(window, "localStorage", {
  get() { throw new DOMException("refused", "SecurityError"); } });"""


@pytest.fixture(scope="module")
def shop(serving):
    """The page's server, and a token for its origin."""
    serving.wire.pages = {
        "/page.html": PAGE.encode(),
        "/empty.html": b"<!doctype html><title>empty</title>",
        "/client.js": BUNDLE.read_bytes(),
        "/worker.js": WORKER.encode(),
    }
    serving.create("news", AFTER)
    serving.create("slow", 3600)
    serving.page_token = serving.token(serving.origin)
    return serving


@pytest.fixture
def profile(browser, shop):
    shop.wire.network = "up"
    context = browser.new_context()
    yield context
    context.close()


def opened(shop, profile, name="news", clock=False, ahead=0.0, **more):
    """A page of the shop with a client of its own, perhaps with a clock that can be set."""
    page = profile.new_page()
    if clock or ahead:
        page.clock.install(time=time.time() + ahead)
    page.goto(f"{shop.origin}/page.html")
    options = {"url": shop.url, "token": shop.page_token, "experiment": name, "maxEpsilon": 1}
    page.evaluate("options => open(options)", {**options, **more})
    return page


def both(page, clicked_first=True):
    """Two decisions that are shown: one is clicked, one is not."""
    clicks = (clicked_first, not clicked_first)
    pair = [page.evaluate("click => visit(click)", click) for click in clicks]
    assert all(each["owed"] for each in pair)
    return pair


def wait_until(true, seconds=15.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def reported(shop, pair):
    return all(shop.wire.reports(each["id"]) for each in pair)


def past(pair):
    time.sleep(max(0.0, pair[-1]["reportAt"] - time.time()) + 0.2)


def answered_once(shop, pair, sent_once=True):
    """Each decision has one report: its bytes fixed, not before its time, learned once."""
    wait_until(lambda: reported(shop, pair))
    time.sleep(0.1)
    for each in pair:
        reports = shop.wire.reports(each["id"])
        (body,) = {sent.body for sent in reports}
        assert re.fullmatch(rb'\{"v":1,"id":"[0-9a-f]{32}","value":[01]\}', body)
        assert min(sent.at for sent in reports) >= each["reportAt"]
        assert len(reports) == 1 or not sent_once
        shown = shop.wire.posts(f"/decisions/{each['id']}/shown")
        assert {sent.body for sent in shown} == {b"{}"}
        again = shop.ask("POST", "/v1/experiments/news/reports", json.loads(body))
        assert again["status"] == "repeated"


def test_a_click_makes_no_difference_on_the_wire(shop, profile):
    page = opened(shop, profile)
    started = len(shop.wire.sent)
    pair = both(page)
    answered_once(shop, pair)
    asked = [each for each in shop.wire.sent[started:] if each.method == "POST"]
    assert len(asked) == 6
    assert not any(each.path.endswith("/reports") for each in asked[:4])
    late = [shop.wire.reports(each["id"])[0].at - each["reportAt"] for each in pair]
    assert max(late) < 5


@pytest.mark.parametrize("how", tiered(["closed", "crashed", "left by the click"], "closed".__eq__))
def test_a_tab_that_is_gone_sends_nothing_and_a_later_visit_does(shop, profile, how):
    pair = [{"reportAt": 0.0}]
    while pair[0]["reportAt"] < time.time():  # a busy machine may take longer than that
        page = opened(shop, profile)
        pair = both(page)
        if how == "closed":
            page.close()
        elif how == "crashed":
            with page.expect_event("crash"):
                _crash(page)
        else:
            page.goto(f"{shop.origin}/empty.html")
    past(pair)
    assert not any(shop.wire.reports(each["id"]) for each in pair)
    opened(shop, profile)
    answered_once(shop, pair)


def _crash(page):
    from playwright.sync_api import Error

    with pytest.raises(Error):
        page.goto("chrome://crash", timeout=5000)


def test_a_visit_before_its_time_sends_nothing(shop, profile):
    page = opened(shop, profile, "slow")
    pair = both(page)
    page.close()
    page = opened(shop, profile, "slow")
    page.evaluate("tacit.flush()")
    assert not any(shop.wire.reports(each["id"]) for each in pair)


def test_offline_and_back(shop, profile):
    page = opened(shop, profile, clock=True)
    decided = [page.evaluate("tacit.decide()") for _ in range(2)]
    profile.set_offline(True)
    pair = [{**each, "owed": page.evaluate("each => tacit.shown(each)", each)} for each in decided]
    page.evaluate("each => tacit.reward(each, 1)", pair[0])
    past(pair)
    page.wait_for_timeout(1000)  # its timers have come and found no network
    profile.set_offline(False)
    time.sleep(0.2)
    assert not any(shop.wire.reports(each["id"]) for each in pair)
    page.clock.fast_forward(31_000)
    answered_once(shop, pair)
    for each in pair:
        mine = [sent for sent in shop.wire.posts("") if each["id"] in f"{sent.path}{sent.body}"]
        words = [sent.path.rpartition("/")[2] for sent in mine]
        assert words == ["decisions", "shown", "reports"]


def test_two_tabs_whose_answers_are_lost_repeat_the_same_bytes(shop, profile):
    pages = [opened(shop, profile) for _ in range(2)]
    pair = both(pages[0])
    before = shop.learned("news")
    shop.wire.network = "deaf"
    past(pair)
    for page in pages:
        page.evaluate("() => { tacit.flush(); }")
    wait_until(lambda: all(len(shop.wire.reports(each["id"])) > 2 for each in pair))
    shop.wire.network = "up"
    for page in pages:
        page.evaluate("tacit.flush()")
    answered_once(shop, pair, sent_once=False)
    assert shop.learned("news") == before + 2


def test_a_clock_that_is_set_back_delays_both(shop, profile):
    page = opened(shop, profile, clock=True)
    pair = both(page)
    page.clock.set_system_time(time.time() - 3600)
    past(pair)
    assert not any(shop.wire.reports(each["id"]) for each in pair)
    page.clock.fast_forward(3_600_000)
    answered_once(shop, pair)


@pytest.mark.parametrize("clicked_first", tiered([True, False], bool))
def test_a_clock_that_is_set_forward_hastens_both(shop, profile, clicked_first):
    page = opened(shop, profile, "slow", clock=True)
    pair = both(page, clicked_first)
    page.clock.set_system_time(time.time() + 7200)
    time.sleep(0.3)
    assert not any(shop.wire.reports(each["id"]) for each in pair)
    opened(shop, profile, "slow", ahead=7200)
    wait_until(lambda: reported(shop, pair))
    page.evaluate("tacit.flush()")
    assert [len({sent.body for sent in shop.wire.reports(each["id"])}) for each in pair] == [1, 1]


@pytest.mark.parametrize("refused", tiered(["IndexedDB", "both"], "IndexedDB".__eq__))
def test_storage_that_is_refused(shop, profile, refused):
    profile.add_init_script(NO_INDEXED_DB + (NO_LOCAL_STORAGE if refused == "both" else ""))
    page = opened(shop, profile)
    pair = both(page)
    if refused == "IndexedDB":
        page.close()
        past(pair)
        page = opened(shop, profile)
    answered_once(shop, pair)
    limited = opened(shop, profile, budget=5)
    assert limited.evaluate("visit(true)")["owed"] == (refused == "IndexedDB")


def test_the_budget_is_one_for_all_tabs(shop, profile):
    pages = [opened(shop, profile, "slow", budget=2.5) for _ in range(2)]
    for page in pages:
        page.evaluate("() => { window.visits = [1, 2, 3].map(() => visit(true)); }")
    found = [page.evaluate("Promise.all(visits)") for page in pages]
    assert sum(each["owed"] for visits in found for each in visits) == 2


def test_the_service_is_killed_and_comes_back(shop, profile):
    page = opened(shop, profile)
    pair = both(page)
    shop.kill()
    past(pair)
    shop.start()
    page.evaluate("tacit.flush()")
    answered_once(shop, pair, sent_once=False)


def test_a_service_worker_sends_when_no_page_does(shop, profile):
    page = opened(shop, profile)
    pair = both(page)
    page.goto(f"{shop.origin}/empty.html")
    options = {"url": shop.url, "token": shop.page_token, "experiment": "news", "maxEpsilon": 1}
    session = profile.new_cdp_session(page)
    registrations = []
    session.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: registrations.extend(event["registrations"]),
    )
    session.send("ServiceWorker.enable")
    page.evaluate(
        """async options => {
          const address = "/worker.js?options=" + encodeURIComponent(JSON.stringify(options));
          await navigator.serviceWorker.register(address, { type: "module" });
          await navigator.serviceWorker.ready;
        }""",
        options,
    )
    past(pair)
    assert not any(shop.wire.reports(each["id"]) for each in pair)
    page.wait_for_timeout(50)
    session.send(
        "ServiceWorker.dispatchPeriodicSyncEvent",
        {
            "origin": shop.origin,
            "registrationId": registrations[-1]["registrationId"],
            "tag": "tacit",
        },
    )
    answered_once(shop, pair)
