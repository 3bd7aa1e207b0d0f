"""Requests as no client of good will sends them: valid ones, mutated, from a seed."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

TREES = [
    {"name": "klucb-cf", "epsilon": 1.0},
    {"name": "dpse", "epsilon": 1.0, "horizon": 1000},
    {"name": "sw-klucb-cf", "epsilon": 0.5, "window": 50},
    {"name": "ts-n"},
    {"name": "linucb", "dimension": 2, "epsilon": 1.0},
    {"name": "goblin", "dimension": 2, "epsilon": 2.0},
]
ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1e308,
    -1e-320,
    2**53 + 1,
    2**63,
    2**64,
    10**400,
    float("nan"),
    float("inf"),
    -float("inf"),
    0.1,
    "",
    " ",
    "\x00",
    "\u202e",
    "é" * 300,
    "a" * 70_000,
    "../../etc/passwd",
    "'; DROP TABLE events; --",
    "{{7*7}}",
    "\ud800",
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"name": "klucb-cf"},
    {"v": 1},
]
CHANGES: list[Any] = [
    {"mode": "learn"},
    {"mode": "frozen"},
    {"mode": "shadow"},
    {"budget": {"day": 5.0}},
    {"add_options": ["pink"]},
    {"retire_options": ["pink"]},
    {"add_people": {"cy": ["ann"]}},
    {"edges": [["ann", "bob"]]},
]
HEADERS = [
    (b"content-type", b"text/plain"),
    (b"content-type", b"application/xml; charset=utf-16"),
    (b"content-type", b"application/json; charset=utf-8"),
    (b"content-type", b"\xff\xfe"),
    (b"content-length", b"99999999999999999999"),
    (b"content-length", b"-5"),
    (b"content-length", "²".encode()),
    (b"idempotency-key", b"abc"),
    (b"idempotency-key", b"\x00" * 3),
    (b"idempotency-key", b"k" * 10_000),
    (b"host", b"["),
    (b"host", b"[::1"),
    (b"host", b"\xff"),
    (b"origin", b"https://elsewhere.example"),
    (b"origin", b"null"),
    (b"accept", b"\x80" * 50),
    (b"if-none-match", b"*"),
    (b"cookie", b"tacit_session=" + b"x" * 5000),
    (b"cookie", b"\xff=;;;=="),
    (b"authorization", b"Bearer \xe9"),
    (b"authorization", b"Basic Og=="),
    (b"x-long", b"y" * 60_000),
    (b"transfer-encoding", b"chunked, chunked"),
]


def text(value: Any) -> bytes:
    return json.dumps(value).encode()


class Disorder:
    """Asks an app in this process, and counts what it answered."""

    def __init__(self, app: Any, token: str, seed: int) -> None:
        self.app, self.token, self.random = app, token, random.Random(seed)
        self.ids = [("news", "unheard-of")]
        self.names = ["news"] * 4 + ["trusted"] * 4 + ["people"] * 4 + ["none"]
        self.made = 0
        self.answered: Counter[int] = Counter()

    async def run(self, n: int) -> None:
        for _ in range(n):
            request = self.request()
            status, body = await self.ask(*request)
            self.answered[status] += 1
            shown = (*request[:2], request[2][:500], request[3])
            assert status < 500, f"{status} {body[:300]!r} for {shown}"
            assert b"Traceback" not in body
            if status >= 400 and request[1].startswith("/v1"):
                assert json.loads(body)["detail"], shown
            if status == 200 and request[1].endswith("/decisions"):
                made = (request[1].split("/")[3], json.loads(body)["id"])
                self.ids = [*self.ids[-50:], made]
            if status == 201 and len(self.names) < 25:
                self.names.append(json.loads(body)["name"])

    async def ask(self, method: str, path: str, body: bytes, headers: Any) -> tuple[int, bytes]:
        parts = [body[: len(body) // 2], body[len(body) // 2 :]]
        status, found = 0, []

        async def receive() -> Any:
            if not parts:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

        async def send(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                found.append(message.get("body", b""))

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode("utf-8", "replace"),
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        await self.app(scope, receive, send)
        return status, b"".join(found)

    def request(self) -> tuple[str, str, bytes, Any]:
        pick = self.random
        method, path, tree = self.valid()
        if pick.random() < 0.03:
            method = pick.choice(["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "BREW", ""])
        if pick.random() < 0.03:
            path += pick.choice(["/", "//", "/%00", "/..", "\x00", "é", "?x=1", "/" + "p" * 3000])
        headers = [(b"authorization", f"Bearer {self.token}".encode())]
        if pick.random() < 0.15:
            headers += pick.sample(HEADERS, pick.randint(1, 3))
        if path.startswith("/experiments") or path in ("/login", "/logout"):
            body = "&".join(f"{k}={v}" for k, v in tree.items()).encode("utf-8", "replace")
            headers.append((b"content-type", b"application/x-www-form-urlencoded"))
        else:
            body = self.written(tree)
        return method, path, self.broken(body), headers

    def valid(self) -> tuple[str, str, Any]:
        pick = self.random
        kind = pick.choices(range(9), (2, 30, 30, 5, 5, 10, 8, 4, 6))[0]
        name, id = pick.choice(self.ids)
        if kind not in (2, 3) or pick.random() < 0.1:
            name = pick.choice(self.names)
        home = f"/v1/experiments/{name}"
        if kind == 0:
            self.made += 1
            return "POST", "/v1/experiments", self.experiment()
        if kind == 1:
            return "POST", f"{home}/decisions", self.decision()
        if kind == 2:
            value = pick.choice([0, 1, 0.5, [0, 1], {"red": 1.0}, {"green": 0.0, "red": 1}])
            report = {"v": 1, "id": id, "value": value}
            return "POST", f"{home}/reports", [report] * pick.choice([1, 3]) if id < "8" else report
        if kind == 3:
            return "POST", f"{home}/decisions/{id}/shown", {}
        if kind == 4:
            return "PATCH", home, pick.choice(CHANGES)
        if kind == 5:
            context = {"targetingKey": pick.choice(["ann", "bob"]), "contexts": {"a": [1.0, 0.0]}}
            place = pick.choice(["", f"/{name}"])
            return "POST", f"/ofrep/v1/evaluate/flags{place}", {"context": context}
        if kind == 6:
            return "GET", pick.choice([home, f"{home}/statistics", "/metrics", "/readyz", "/"]), {}
        if kind == 7:
            forms = [("/login", {"token": "x"}), ("/logout", {}), (f"/experiments/{name}/mode", {})]
            return "POST", *pick.choice(forms)
        return "GET", pick.choice(["/static/..", "/static/a.css", "/nowhere", f"/{id}"]), {}

    def experiment(self) -> Any:
        policy = dict(self.random.choice(TREES))
        who: Any = {"options": ["red", "green"]}
        if policy["name"] in ("linucb", "goblin"):
            who = {"people": ["ann", "bob"]}
        if policy["name"] == "goblin":
            who["edges"] = [["ann", "bob"]]
        name = self.random.choice(["news", f"e{self.made}"])
        return {
            "name": name,
            "policy": policy,
            "reward": {"kind": "binary", "default": 0, "report_after": 60},
            "grace": 1,
            **who,
        }

    def decision(self) -> Any:
        pick = self.random
        if pick.random() < 0.5:
            people = {"person": "ann", "contexts": {"a": [1.0, 0.0], "b": [0.0, 1.0]}}
            return {"shown": True, **pick.choice([{}, {}, {"eligible": ["red"]}, people])}
        whole = {
            "id": pick.choice([None, f"i{pick.randrange(20)}"]),
            "person": pick.choice(["ann", "bob", None]),
            "eligible": pick.choice([None, ["red"], ["red", "green"]]),
            "contexts": pick.choice([None, {"a": [1.0, 0.0], "b": [0.0, 1.0]}]),
            "shown": True,
        }
        return {name: value for name, value in whole.items() if pick.random() < 0.7}

    def written(self, tree: Any) -> bytes:
        pick = self.random
        for _ in range(pick.choice([0, 0, 0, 1, 1, 2, 4])):
            tree = self.changed(tree)
        return text(tree)

    def changed(self, tree: Any) -> Any:
        """Put something odd somewhere in a tree."""
        pick = self.random
        if isinstance(tree, dict) and tree and pick.random() < 0.85:
            name, grown = pick.choice(list(tree)), dict(tree)
            what = pick.random()
            if what < 0.1:
                del grown[name]
            elif what < 0.2:
                grown[pick.choice(["extra", "", "id", "v"])] = pick.choice(ODD)
            else:
                grown[name] = self.changed(tree[name])
            return grown
        if isinstance(tree, list) and tree and pick.random() < 0.7:
            at, grown_list = pick.randrange(len(tree)), list(tree)
            grown_list[at] = self.changed(tree[at])
            return grown_list * pick.choice([1, 1, 2])
        return pick.choice(ODD)

    def broken(self, body: bytes) -> bytes:
        """Break the bytes themselves, sometimes."""
        pick = self.random
        what = pick.random()
        if what > 0.2 or not body:
            return body
        if what < 0.06:
            return body[: pick.randrange(len(body))]
        if what < 0.12:
            at = pick.randrange(len(body))
            return body[:at] + pick.randbytes(pick.randint(1, 4)) + body[at + 1 :]
        if what < 0.14:
            return pick.choice([b"[", b'{"policy":', b'{"context":{"a":']) * 20_000
        if what < 0.15:
            return b'{"policy":' + b"[" * 900 + b"]" * 900 + b"}"
        if what < 0.17:
            return body.replace(b"1", pick.choice([b"1" * 400, b"1e999", b"NaN", b"-0.0", b"01"]))
        if what < 0.18:
            return b"\xef\xbb\xbf" + body
        if what < 0.185:
            return b" " * ((1 << 20) + 1)
        return pick.randbytes(pick.randint(1, 200))
