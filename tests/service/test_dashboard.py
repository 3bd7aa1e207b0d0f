"""The pages: who may see them, what they show, and how they behave in a real browser."""

from __future__ import annotations

import re
import shutil
import socket
import threading
import time

import httpx2
import pytest
import uvicorn

from service.conftest import LOCAL
from service.processes import create
from tacit.service import open_service
from tacit.service.server import tokens_of
from tacit.serving.storage import StoreError

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def signed_in(service):
    page = service.http.post("/login", data={"token": service.admin}, follow_redirects=True)
    assert page.status_code == 200
    return page


def test_nothing_is_shown_without_an_administrators_token(service):
    service.create(LOCAL)
    assert "Sign in" in service.http.get("/").text
    assert service.http.get("/experiments/news/numbers").status_code == 401
    assert service.http.get("/experiments/news", follow_redirects=False).status_code == 303
    decider = service.opened.tokens.create("shop", ["decide"])
    for token in ("", "wrong", decider):
        answer = service.http.post("/login", data={"token": token})
        assert answer.status_code == 403
        assert "not an administrator" in answer.text


@pytest.mark.parametrize("silent", [9, 10])
def test_the_page_says_when_too_many_reports_are_missing(service, silent):
    # Finding U1
    service.create(LOCAL)
    signed_in(service)
    core = service.opened.manager.experiments["news"].core
    core.learned, core.silent = 100 - silent, silent
    text = service.http.get("/experiments/news/numbers").text
    assert ("of reports did not come in time" in text) == (silent == 10)


def test_a_session_sees_the_experiment_and_ends_with_its_token(service):
    service.create(LOCAL, budget={"day": 4.0})
    home = signed_in(service)
    assert "news" in home.text
    cookie = home.history[0].headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    for _ in range(5):
        service.decide(person="ann", shown=True)
    page = service.http.get("/experiments/news")
    for text in ("red", "green", "blue", "What is protected", "Budget used", "epsilon 4"):
        assert text in page.text
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert not re.search(r"https?://(?!127)", page.text)
    service.opened.tokens.revoke("first")
    assert "Sign in" in service.http.get("/").text


def test_a_session_that_was_ended_or_is_old_is_worth_nothing(service, monkeypatch):
    signed_in(service)
    session = service.http.cookies["tacit_session"]
    with monkeypatch.context() as later:
        until = int(session.split(".")[0])
        later.setattr("tacit.service.dashboard.time.time", lambda: until + 1.0)
        assert "Sign in" in service.http.get("/").text
    # The client has forgotten what is old.
    service.http.cookies.set("tacit_session", session)
    assert "Sign in" not in service.http.get("/").text
    _, digest, *_ = session.split(".")
    elsewhere = tokens_of(service.store)
    assert elsewhere.session_of(digest, session) is not None
    service.http.post("/logout")
    service.http.cookies.set("tacit_session", session)
    assert "Sign in" in service.http.get("/").text
    # Another process knows it within a second, and so does the next one that is started.
    assert tokens_of(service.store).session_of(digest, session) is None
    monkeypatch.setattr("tacit.service.tokens._CHECK_EVERY", 0.0)
    assert elsewhere.session_of(digest, session) is None
    # Others of the same token go on.
    service.http.cookies.clear()
    signed_in(service)
    assert "Sign in" not in service.http.get("/").text


def test_forms_steer_and_other_sites_cannot(service):
    service.create(LOCAL)
    signed_in(service)
    done = service.http.post("/experiments/news/mode", data={"mode": "frozen"})
    assert "frozen" in done.text
    service.http.post("/experiments/news/options", data={"do": "add", "name": "pink"})
    service.http.post(
        "/experiments/news/options", data={"do": "retire", "name": "red", "sure": "yes"}
    )
    facts = service.call("GET", "/v1/experiments/news").json()
    assert facts["mode"] == "frozen"
    assert [o["name"] for o in facts["options"] if not o["retired"]] == ["green", "blue", "pink"]
    twice = service.http.post("/experiments/news/options", data={"do": "add", "name": "pink"})
    assert "expected a new name" in twice.text
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        evil = service.http.post("/experiments/news/mode", data={"mode": "off"}, headers=headers)
        assert evil.status_code == 403
    assert service.call("GET", "/v1/experiments/news").json()["mode"] == "frozen"


def test_the_health_of_the_store_is_shown(service, monkeypatch):
    service.create(LOCAL)
    signed_in(service)
    assert "can be written" in service.http.get("/experiments/news").text

    def full() -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(service.opened.manager.store, "check", full)
    service.opened.app.state.readiness = (0.0, "")
    assert "the disk is full" in service.http.get("/experiments/news").text


def test_names_are_shown_as_text(service):
    service.create(LOCAL, options=["<script>alert(1)</script>", "b"])
    signed_in(service)
    assert "<script>alert" not in service.http.get("/experiments/news").text


def test_the_pages_fit_what_they_show(service):
    people = {"name": "linucb", "dimension": 2, "epsilon": 1.0, "n_users": 1}
    service.create({"name": "people", "policy": people, "people": ["ann"]})
    service.create(LOCAL, mode="shadow")
    service.decide(shown=True)
    home = signed_in(service).text
    # Nobody leads where everybody gets the baseline.
    assert "has most traffic" not in home
    page = service.http.get("/experiments/news").text
    assert re.search(r"<bdi>red</bdi> <span class=.quiet.>baseline</span>", page)
    assert "no reports yet" in page
    page = service.http.get("/experiments/people").text
    assert "They come with each decision" in page
    assert "all options" not in page
    service.call("PATCH", "/v1/experiments/news", {"mode": "learn"})
    service.decide(eligible=["blue"])
    service.decide(eligible=["blue"])
    assert re.search(
        r"blue<span class=.on-phones quiet.> has most traffic", service.http.get("/").text
    )


def test_only_the_pages_own_files_are_served(service):
    assert service.http.get("/static/dashboard.css").status_code == 200
    for name in ("..%2fapp.py", "base.html", "none.css"):
        assert service.http.get(f"/static/{name}").status_code == 404


@pytest.fixture
def running(tmp_path):
    opened = open_service(tmp_path / "store.db")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(opened.app, port=port, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}", opened.first_token
    server.should_exit = True
    thread.join()


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
@pytest.mark.parametrize("width", [1280, 390])
def test_a_person_steers_it_with_the_keyboard(running, width):
    sync_api = pytest.importorskip("playwright.sync_api")
    url, token = running
    headers = {"authorization": f"Bearer {token}"}
    wanted = {**LOCAL, "options": [*LOCAL["options"], "a" * 200]}
    assert create(url, wanted, headers).status_code == 201
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": width, "height": 800})
        asked, complaints = set(), []
        page.on("request", lambda request: asked.add(request.url.split("/")[2]))
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(url)
        page.locator("input:focus").wait_for()  # the field has the focus
        page.keyboard.type(token)
        page.keyboard.press("Enter")
        page.wait_for_selector(".experiments")
        hidden = "document.querySelector('.scroll').scrollWidth - innerWidth"
        assert page.evaluate(hidden) <= 0
        page.get_by_role("link", name="news").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#numbers table")
        overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0
        before = page.inner_text("#numbers")
        for _ in range(3):
            httpx2.post(f"{url}/v1/experiments/news/decisions", json={}, headers=headers)
        page.wait_for_function(
            "before => document.querySelector('#numbers').innerText !== before",
            arg=before,
            timeout=8000,
        )
        page.get_by_label("Mode").focus()
        page.keyboard.type("frozen")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("h1 .frozen")
        browser.close()
    assert asked == {url.split("/")[2]}
    assert complaints == []
