"""Several processes on one PostgreSQL database: owners, forwarding, take-over; nothing is lost."""

from __future__ import annotations

import random
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from commands import tacit
from service.conftest import LOCAL
from service.processes import NEWS, UNENCRYPTED, Clients, Process, Waiting
from tacit.core import kernels

MANY = {**LOCAL, "max_open": 1_000_000}


class Cluster:
    """Processes on one schema."""

    def __init__(self, folder, server) -> None:
        self.folder, self.server, self.schema = folder, server, server.fresh()
        self.address = server.address(self.schema)
        self.processes: list[Process] = []
        self.first = self.serve()
        self.headers = {"authorization": f"Bearer {self.first.token}"}

    def serve(self, afresh=False) -> Process:
        where = ("--state-prefix", str(self.folder / "outside"))
        started = Process(self.folder, self.address, *where, afresh=afresh)
        self.processes.append(started)
        return started

    def call(self, process, method, path, body=None, **headers):
        return httpx2.request(
            method,
            process.url + path,
            json=body,
            headers={**self.headers, **headers},
            timeout=120,
            verify=UNENCRYPTED,
        )

    def run(self, statement):
        with self.server.connect(self.schema) as db:
            return db.execute(statement)


@pytest.fixture
def cluster(tmp_path, postgres):
    made = Cluster(tmp_path, postgres)
    yield made
    for each in made.processes:
        each.process.kill()
        each.process.wait()


def until(true, seconds=20.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)


def test_whoever_is_asked_passes_it_on(cluster):
    one, two = cluster.first, cluster.serve()
    call = cluster.call
    assert two.token is None
    assert call(one, "POST", "/v1/experiments", LOCAL).status_code == 201
    assert call(two, "POST", "/v1/experiments", {**LOCAL, "name": "other"}).status_code == 201
    assert call(two, "POST", "/v1/experiments", LOCAL).status_code == 409

    decision = call(two, "POST", f"{NEWS}/decisions", {"id": "a", "shown": True})
    assert decision.status_code == 200
    assert call(one, "POST", f"{NEWS}/decisions", {"id": "a", "shown": True}).json() == (
        decision.json()
    )
    other = call(one, "POST", f"{NEWS}/decisions", {"id": "a", "eligible": ["red"]})
    assert other.status_code == 409
    assert other.headers["content-type"] == "application/problem+json"
    report = {"v": 1, "id": "a", "value": 1}
    assert call(two, "POST", f"{NEWS}/reports", report).json()["status"] == "learned"
    assert call(one, "POST", f"{NEWS}/reports", report).json()["status"] == "repeated"

    for each in (one, two):
        listed = call(each, "GET", "/v1/experiments").json()["experiments"]
        assert [row["name"] for row in listed] == ["news", "other"]
        flags = call(each, "POST", "/ofrep/v1/evaluate/flags", {"context": {"targetingKey": "x"}})
        assert [flag["key"] for flag in flags.json()["flags"]] == ["news", "other"]
        tag = flags.headers["etag"]
        again = {"context": {"targetingKey": "x"}}
        same = call(each, "POST", "/ofrep/v1/evaluate/flags", again, **{"if-none-match": tag})
        assert same.status_code == 304
        assert call(each, "GET", "/v1/experiments/nothing").status_code == 404
        assert call(each, "GET", NEWS, authorization="Bearer wrong").status_code == 401
        large = {"id": "b", "person": "x" * 2_000_000}
        assert call(each, "POST", f"{NEWS}/decisions", large).status_code == 413
        assert call(each, "GET", "/readyz").status_code == 200

    # One session for the pages of all processes.
    session = httpx2.post(f"{one.url}/login", data={"token": one.token}).cookies["tacit_session"]
    for each in (one, two):
        with httpx2.Client(
            base_url=each.url, verify=UNENCRYPTED, cookies={"tacit_session": session}
        ) as browser:
            assert "another process" in browser.get("/").text
            for name in ("news", "other"):
                assert "What is protected" in browser.get(f"/experiments/{name}").text
            browser.cookies.set("tacit_session", session[:-1] + "x")
            assert "Sign in" in browser.get("/").text
            assert browser.get("/experiments/news").status_code == 303
    # Closed at one of them it is closed at all.
    with httpx2.Client(base_url=one.url, cookies={"tacit_session": session}) as browser:
        assert browser.post("/logout").status_code == 303
    with httpx2.Client(base_url=two.url, cookies={"tacit_session": session}) as browser:
        until(lambda: "Sign in" in browser.get("/").text, 5)
        assert browser.get("/experiments/news").status_code == 303

    made = tacit("token", "create", "--store", cluster.address, "shop", cwd=cluster.folder)
    assert made.returncode == 0, made.stderr
    shop = f"Bearer {made.stdout.strip()}"
    until(lambda: call(two, "GET", NEWS, authorization=shop).status_code == 200)
    assert call(two, "PATCH", NEWS, {"mode": "off"}, authorization=shop).status_code == 403

    # Whoever does not know the secret of the database is not listened to.
    for (address,) in cluster.run("SELECT address FROM servers").fetchall():
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), timeout=5) as stranger:
            assert len(stranger.recv(32)) == 32
            stranger.sendall(bytes(64) + b"\x00\x00\x00\x10" + bytes(16))
            assert stranger.recv(1) == b""

    begun = time.monotonic()
    assert one.kill(signal.SIGTERM) == 0
    assert time.monotonic() - begun < 6
    answer = call(two, "POST", f"{NEWS}/decisions", {"id": "a", "shown": True})
    assert answer.json()["option"] == decision.json()["option"]
    assert two.kill(signal.SIGTERM) == 0


def test_one_name_created_twice_in_one_moment_is_one_experiment(cluster):
    one, two = cluster.first, cluster.serve()

    def create(place):
        process, number = place
        wanted = {**LOCAL, "name": f"twin-{number}"}
        return cluster.call(process, "POST", "/v1/experiments", wanted).status_code

    places = [(process, number) for number in range(6) for process in (one, two)]
    with ThreadPoolExecutor(2) as both:
        made = list(both.map(create, places))
    assert sorted(made) == [201] * 6 + [409] * 6
    for process in (one, two):
        assert process.kill(signal.SIGTERM) == 0


def test_half_a_request_is_none(cluster):
    one, two = cluster.first, cluster.serve()
    assert cluster.call(one, "POST", "/v1/experiments", LOCAL).status_code == 201
    head = f"POST {NEWS}/decisions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n"
    half = f"{head}authorization: {cluster.headers['authorization']}\r\n\r\n2\r\n{{}}\r\n"
    for process in (one, two):
        where = process.url.removeprefix("http://").split(":")
        with socket.create_connection((where[0], int(where[1])), timeout=5) as gone:
            gone.sendall(half.encode())
        time.sleep(0.3)
        rows = cluster.call(process, "GET", f"{NEWS}/statistics").json()["options"]
        assert sum(row["decided"] for row in rows) == 0


def test_another_key_of_pseudonyms_is_refused(cluster, tmp_path):
    place = ["--store", cluster.address, "--beside", tmp_path / "elsewhere"]
    refused = tacit("serve", *place, "--port", "0", cwd=tmp_path)
    assert refused.returncode == 2
    assert "key of pseudonyms" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    cluster.first.kill()


def test_a_silent_owner_is_replaced_and_wakes_up_powerless(cluster):
    sleeper, heir = cluster.first, cluster.serve()
    call = cluster.call
    call(sleeper, "POST", "/v1/experiments", LOCAL)
    assert call(heir, "POST", f"{NEWS}/decisions", {"id": "before"}).status_code == 200
    sleeper.process.send_signal(signal.SIGSTOP)
    # It holds its lock and does not answer: one is told to come back.
    waiting = call(heir, "POST", f"{NEWS}/decisions", {"id": "while"})
    assert waiting.status_code == 503
    assert waiting.headers["retry-after"]
    cluster.run(
        "UPDATE servers SET seen = seen - interval '1 hour' WHERE seen IN"
        " (SELECT min(seen) FROM servers)"
    )
    until(lambda: call(heir, "POST", f"{NEWS}/decisions", {"id": "while"}).status_code == 200)
    made = call(heir, "POST", f"{NEWS}/decisions", {"id": "while"}).json()
    sleeper.process.send_signal(signal.SIGCONT)
    # What it was asked before it slept it cannot commit; what it is asked now it passes on.
    until(lambda: call(sleeper, "GET", NEWS).status_code == 200)
    assert call(sleeper, "POST", f"{NEWS}/decisions", {"id": "while"}).json() == made
    assert call(sleeper, "POST", f"{NEWS}/decisions", {"id": "after"}).status_code == 200
    found = call(heir, "GET", f"{NEWS}/statistics").json()["options"]
    assert sum(row["decided"] for row in found) == 3
    sleeper.kill()
    heir.kill()


@pytest.mark.skipif(kernels.INTERPRETED, reason="nothing is compiled")
def test_an_heir_that_must_compile_first_goes_on_with_the_rest(cluster, monkeypatch, tmp_path):
    plain = {"name": "news", "policy": {"name": "ucb1"}, "options": ["red", "green"]}
    assert cluster.call(cluster.first, "POST", "/v1/experiments", plain).status_code == 201
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    heir = cluster.serve(afresh=True)
    before = cluster.call(heir, "POST", f"{NEWS}/decisions", {"id": "a"}).json()
    cluster.first.kill()
    others = Waiting(heir.url, cluster.headers, "GET", "/healthz")
    begun = time.monotonic()
    until(lambda: cluster.call(heir, "POST", f"{NEWS}/decisions", {"id": "b"}).status_code == 200)
    took = time.monotonic() - begun
    others.stop()
    assert cluster.call(heir, "POST", f"{NEWS}/decisions", {"id": "a"}).json() == before
    assert max(others.took) < took / 3, (max(others.took), took)
    assert heir.kill(signal.SIGTERM) == 0


def kills(cluster, times):
    processes = [cluster.first, cluster.serve()]
    clients = Clients(cluster.first.token)
    made = cluster.call(cluster.first, "POST", "/v1/experiments", MANY)
    assert made.status_code == 201
    clients.urls = [each.url for each in processes]
    clients.start()
    slowest = 0.0
    try:
        for i in range(times):
            chance = random.Random(i)
            clients.until_more(chance.randint(5, 25))
            gone = chance.randrange(2)
            processes[gone].kill()
            clients.urls = [processes[1 - gone].url]
            slowest = max(slowest, clients.until_more(5))
            processes[gone] = cluster.serve()
            clients.urls = [each.url for each in processes]
    finally:
        clients.stop()
    assert len(clients.reported) >= 10 * times
    assert slowest < 25
    clients.check(processes[0].url)
    for each in processes:
        assert each.kill(signal.SIGTERM) == 0


@pytest.mark.parametrize("times", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_kill_9_of_either_process_under_load(cluster, times):
    kills(cluster, times)


@pytest.mark.soak
def test_kill_9_of_either_process_for_long(cluster):
    kills(cluster, 200)


def test_a_database_that_restarts_under_load(cluster, postgres):
    processes = [cluster.first, cluster.serve()]
    clients = Clients(cluster.first.token)
    cluster.call(cluster.first, "POST", "/v1/experiments", MANY)
    clients.urls = [each.url for each in processes]
    clients.start()
    try:
        for how in ("immediate", "fast"):
            clients.until_more(20)
            postgres.stop(how)
            time.sleep(0.5)
            postgres.start()
            clients.until_more(20)
    finally:
        clients.stop()
    assert len(clients.reported) >= 80
    clients.check(processes[1].url)
    for each in processes:
        assert each.kill(signal.SIGTERM) == 0


def test_an_old_dump_is_refused_until_it_is_called_one(cluster, tmp_path):
    process, call = cluster.first, cluster.call
    call(process, "POST", "/v1/experiments", {**LOCAL, "budget": {"lifetime": 3.0}})
    ask = {"person": "ann", "shown": True}
    assert call(process, "POST", f"{NEWS}/decisions", ask).json()["instructions"]
    cluster.server.dump(cluster.schema, tmp_path / "dump.sql")
    for _ in range(2):
        assert call(process, "POST", f"{NEWS}/decisions", ask).json()["instructions"]
    process.kill(signal.SIGTERM)
    cluster.server.put_back(cluster.schema, tmp_path / "dump.sql")
    place = ["--store", cluster.address, "--beside", str(tmp_path / "outside")]
    refused = tacit("serve", *place, "--port", "0", cwd=tmp_path)
    assert refused.returncode == 2
    assert "old copy" in refused.stderr
    said = tacit("service", "restore", *place, cwd=tmp_path)
    assert said.returncode == 0
    assert "old copy was restored" in said.stdout
    process = cluster.serve()
    # What the lost history may have spent is spent: nothing is left of 3.
    assert call(process, "POST", f"{NEWS}/decisions", ask).json()["reason"] == "budget"
    assert "old copy was restored" in call(process, "GET", NEWS).json()["sentence"]
    process.kill()


# Finding S3
def test_an_export_comes_whole_from_whoever_is_asked(cluster):
    one, two = cluster.first, cluster.serve()
    assert cluster.call(one, "POST", "/v1/experiments", MANY).status_code == 201
    ids = [f"d{i}" for i in range(20)]
    for id in ids:
        cluster.call(one, "POST", f"{NEWS}/decisions", {"id": id, "shown": True})
    cluster.call(one, "POST", f"{NEWS}/reports", [{"v": 1, "id": id, "value": 1} for id in ids])
    texts = [cluster.call(each, "GET", f"{NEWS}/released").text for each in (one, two)]
    assert texts[0] == texts[1]
    assert texts[0].count("\n") == 2 * len(ids)
    assert "Traceback" not in (cluster.folder / "serve.log").read_text()
