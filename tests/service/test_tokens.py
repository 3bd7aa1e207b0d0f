"""Who may do what, and from which page."""

from __future__ import annotations

import asyncio
import os

import pytest

from service.conftest import LOCAL, Service
from tacit.service.tokens import Tokens


def test_only_a_digest_is_kept_and_a_revoked_token_is_worthless(tmp_path):
    tokens = Tokens(tmp_path / "tokens")
    secret = tokens.create("shop", ["decide"])
    assert len(secret) >= 43
    text = (tmp_path / "tokens").read_text()
    assert secret not in text
    assert os.stat(tmp_path / "tokens").st_mode & 0o777 == 0o600
    assert tokens.find(secret).may("decide")
    assert not tokens.find(secret).may("report")
    assert tokens.find("guess") is None
    elsewhere = Tokens(tmp_path / "tokens")
    elsewhere.revoke("shop")
    tokens._read_at -= 2
    assert tokens.find(secret) is None


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (("", ["decide"]), "name of 1 to 100"),
        (("shop", []), "at least one"),
        (("shop", ["root"]), "one of decide, report, metrics, admin"),
        (("shop", ["admin"], ["https://a.example"]), "not for an administrator"),
        (("shop", ["decide"], ["a.example"]), "such as https"),
    ],
)
def test_bad_tokens_are_refused(tmp_path, given, complaint):
    with pytest.raises(ValueError, match=complaint):
        Tokens(tmp_path / "tokens").create(*given)


def test_scopes_are_enforced(service):
    service.create(LOCAL)
    tokens = service.opened.tokens
    only = {scope: tokens.create(scope, [scope]) for scope in ("decide", "report")}
    path = "/v1/experiments/news"
    assert service.call("POST", f"{path}/decisions", {}, token=None).status_code == 401
    assert service.call("POST", f"{path}/decisions", {}, token="wrong").status_code == 401
    assert service.call("POST", f"{path}/decisions", {}, token=only["decide"]).status_code == 200
    assert service.call("POST", f"{path}/decisions", {}, token=only["report"]).status_code == 403
    assert service.call("POST", f"{path}/reports", [], token=only["decide"]).status_code == 403
    assert service.call("PATCH", path, {"mode": "off"}, token=only["decide"]).status_code == 403
    assert service.call("POST", "/v1/experiments", LOCAL, token=only["decide"]).status_code == 403


def test_a_page_may_use_only_its_own_token(service):
    service.create(LOCAL)
    secret = service.opened.tokens.create("page", ["decide", "report"], ["https://shop.example"])
    headers = {"authorization": f"Bearer {secret}", "origin": "https://shop.example"}
    path = "/v1/experiments/news/decisions"
    allowed = service.http.post(path, json={}, headers=headers)
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == "https://shop.example"
    other = service.http.post(path, json={}, headers={**headers, "origin": "https://evil.example"})
    assert other.status_code == 403
    assert "access-control-allow-origin" not in other.headers
    asked = {"origin": "https://shop.example", "access-control-request-method": "POST"}
    before = service.http.options(path, headers=asked)
    assert before.status_code == 204
    assert "authorization" in before.headers["access-control-allow-headers"]
    assert service.http.options(path, headers={"origin": "https://evil.example"}).status_code == 405


def test_a_token_that_asks_too_often_waits(service):
    service.create(LOCAL)
    service.opened.app.state.rate = 5.0
    answers = [service.call("GET", "/v1/experiments").status_code for _ in range(20)]
    assert 429 in answers
    assert answers[0] == 200


def test_a_token_that_is_revoked_while_a_body_comes_in_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tacit.service.http._SLOW", 0.0)
    monkeypatch.setattr("tacit.service.tokens._CHECK_EVERY", 0.0)
    service = Service(tmp_path / "s.db")
    service.create(LOCAL)
    app, tokens = service.opened.app, service.opened.tokens
    secret, parts, status = tokens.create("shop", ["decide"]), [b"{", b"}"], []

    async def receive():
        part = parts.pop(0)
        if not parts:
            tokens.revoke("shop")
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message):
        status.append(message.get("status"))

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/experiments/news/decisions",
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {secret}".encode())],
    }
    asyncio.run(app(scope, receive, send))
    assert status[0] == 401
    assert service.opened.manager.experiments["news"].core.decided == 0
    service.stop()
