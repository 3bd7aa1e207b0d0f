"""What we ship is started: unit, container file and proxies, as a user who may write almost nowhere."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import pytest

import commands
from service.conftest import CENTRAL, LOCAL, Service
from service.processes import Process, create
from tacit.service import export
from tacit.serving.core import Core

EXAMPLES = Path(__file__).parents[2] / "examples" / "service"
USER = 64_321
"""A number that nobody has."""
READS = "-all,+dac_read_search"
# Reads what this machine's Python consists of, wherever it lies, and writes only what is its own.
AS_USER = (
    *("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"),
    *(f"--inh-caps={READS}", f"--ambient-caps={READS}", f"--bounding-set={READS}"),
)
HOME = {"HOME": "/nonexistent", "PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1"}
QUICK = {**LOCAL, "policy": {"name": "sw-ucb", "epsilon": 1.0, "horizon": 1000}}


def can_be_another() -> bool:
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        return False
    tried = subprocess.run(
        [*AS_USER, sys.executable, "-c", ""], check=False, capture_output=True, env=HOME
    )
    return tried.returncode == 0


another = pytest.mark.skipif(
    not can_be_another(), reason="only root with setpriv can start it as another user"
)


def own_folder(place: Path, mode: int = 0o700) -> Path:
    place.mkdir(mode=mode)
    os.chown(place, USER, USER)
    return place


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Unprivileged:
    """A command as another user, until the end of the test; its log is lines of JSON."""

    def __init__(self, words, env, log, umask=0o077):
        with log.open("w") as err:
            self.process = subprocess.Popen(
                [*AS_USER, *words],
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
                env={**HOME, **env},
                cwd="/",
                umask=umask,
            )
        self.said = []
        for line in self.process.stdout:
            self.said.append(line)
            if line.startswith("serving"):
                self.url = line.split()[1].replace("0.0.0.0", "127.0.0.1")
                break
        else:
            raise AssertionError(log.read_text())

    @property
    def token(self) -> str:
        (line,) = [line for line in self.said if line.startswith("token")]
        place = Path(line.partition(" in ")[2].rpartition("  (")[0])
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        return place.read_text().strip()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=60) == 0
        self.process.stdout.close()


def work(url, token):
    """Create an experiment and decide: kernels are compiled, kept and loaded."""
    headers = {"authorization": f"Bearer {token}"}
    made = create(url, QUICK, headers)
    assert made.status_code == 201, made.text
    path = f"{url}/v1/experiments/news/decisions"
    assert httpx2.post(path, json={}, headers=headers).status_code == 200


# Finding S1
@another
def test_kernels_are_kept_beside_the_store_where_numba_finds_no_place(tmp_path):
    folder, log = own_folder(tmp_path / "state"), tmp_path / "log"
    words = [sys.executable, "-m", "tacit", "serve", "--store", f"{folder}/s.db", "--port", "0"]
    running = Unprivileged(words, {}, log)
    work(running.url, running.token)
    running.stop()
    said = [json.loads(line) for line in log.read_text().splitlines()]
    (line,) = [line for line in said if line["event"] == "kernels"]
    assert str(folder / "s.db.kernels") in line["detail"]
    kept = [file for file in (folder / "s.db.kernels").rglob("*") if file.is_file()]
    assert kept
    assert stat.S_IMODE((folder / "s.db.kernels").stat().st_mode) == 0o700
    # A store with an experiment starts again, from what was kept.
    before = {file: file.stat().st_mtime_ns for file in kept}
    again = Unprivileged(words, {}, log)
    again.stop()
    assert {file: file.stat().st_mtime_ns for file in kept} == before


def unit() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (EXAMPLES / "tacit.service").read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals:
            found.setdefault(name, []).append(value)
    return found


# Finding S1
@pytest.mark.slow
@another
def test_the_systemd_unit_runs(tmp_path):
    """Its command, user, folders, environment and umask; all else that it may write is the folders'."""
    said = unit()
    state, cache = own_folder(tmp_path / "lib"), own_folder(tmp_path / "cache")
    places = {
        f"/var/lib/{said['StateDirectory'][0]}": str(state),
        f"/var/cache/{said['CacheDirectory'][0]}": str(cache),
    }

    def here(text: str) -> str:
        for place, instead in places.items():
            text = text.replace(place, instead)
        return text

    program, *words = shlex.split(here(said["ExecStart"][0]))
    assert program.endswith("/tacit")
    words[words.index("--port") + 1] = str(free_port())
    environment = dict(here(each).split("=", 1) for each in said["Environment"])
    assert environment["NUMBA_CACHE_DIR"] == str(cache)
    log = tmp_path / "log"
    running = Unprivileged(
        [sys.executable, "-m", "tacit", *words], environment, log, int(said["UMask"][0], 8)
    )
    secret = running.token
    work(running.url, secret)
    running.stop()
    assert any(cache.rglob("*.nbc"))
    # Finding S7: what the journal is told has no token in it.
    assert secret not in log.read_text() + "".join(running.said)
    for file in state.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_understands_the_unit(tmp_path):
    text = (EXAMPLES / "tacit.service").read_text()
    place = tmp_path / "tacit.service"
    place.write_text(text.replace("/opt/tacit/bin/tacit", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", place],
        capture_output=True,
        text=True,
        check=False,
    )
    about = [line for line in done.stderr.splitlines() if "tacit.service" in line]
    assert not about, about


# Finding S15
@pytest.mark.slow
@another
def test_the_container_file_runs_and_its_health_is_checked(tmp_path):
    text = (EXAMPLES / "Containerfile").read_text()
    volume, log = own_folder(tmp_path / "volume"), tmp_path / "log"

    def words_of(pattern: str) -> list[str]:
        (found,) = re.findall(pattern, text, re.MULTILINE)
        return [word.replace("/var/lib/tacit", str(volume)) for word in json.loads(found)]

    program, *words = words_of(r"^CMD (\[.*\])$")
    assert program == "tacit"
    assert "USER tacit" in text
    environment = dict(
        each.replace("/var/lib/tacit", str(volume)).split("=", 1)
        for each in re.findall(r"^ENV (\S+)$", text, re.MULTILINE)
    )
    port = free_port()
    running = Unprivileged(
        [sys.executable, "-m", "tacit", *words, "--port", str(port)], environment, log, 0o022
    )
    work(running.url, running.token)
    assert any((volume / "kernels").rglob("*.nbc"))
    python, *check = words_of(r"^HEALTHCHECK .*CMD (\[.*\])$")
    assert python == "python"
    check = [sys.executable, *(word.replace(":8000", f":{port}") for word in check)]
    assert subprocess.run(check, check=False).returncode == 0
    running.stop()
    assert subprocess.run(check, check=False, capture_output=True).returncode != 0


def nginx(folder: Path, server: str) -> list[str]:
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n"
        f"fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n"
        f"{server} }}"
    )
    return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def recipe_of_nginx(folder, port, behind, prefix, kept):
    text = (EXAMPLES / "nginx.conf").read_text()
    text = re.sub(r"^ *ssl_certificate.*\n", "", text, flags=re.MULTILINE)
    text = text.replace("listen 443 ssl", f"listen 127.0.0.1:{port}")
    # With a path of its own nginx takes the prefix away.
    text = text.replace("http://127.0.0.1:8000;", f"{behind}{'' if kept else '/'};")
    return nginx(folder, text.replace("location / {", f"location {prefix}/ {{"))


def recipe_of_caddy(folder, port, behind, prefix, kept):
    text = (EXAMPLES / "Caddyfile").read_text().replace("tacit.example", f"http://127.0.0.1:{port}")
    where = f"{prefix}/* " if prefix else ""
    if kept:
        text = text.replace("reverse_proxy 127", f"reverse_proxy {where}127")
    else:
        text = text.replace("reverse_proxy 127", "uri strip_prefix /tacit\n\treverse_proxy 127")
    text = text.replace("127.0.0.1:8000", behind.removeprefix("http://"))
    (folder / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https off\n}\n" + text)
    return ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


@contextlib.contextmanager
def started(words, port, log):
    environment = {**os.environ, "HOME": str(log.parent), "XDG_DATA_HOME": str(log.parent)}
    with log.open("w") as said:
        process = subprocess.Popen(words, stdout=said, stderr=said, env=environment)
    try:
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


def sign_in(url, prefix, token, **headers):
    """Sign in as a browser does; return the page, and a client with its cookie."""
    http = httpx2.Client(base_url=url, headers={"origin": url, **headers}, follow_redirects=True)
    return http, http.post(f"{prefix}/login", data={"token": token})


# Finding S12
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "stripped"])
@pytest.mark.parametrize("prefix", ["", "/tacit"])
@pytest.mark.parametrize("proxy", [recipe_of_nginx, recipe_of_caddy], ids=["nginx", "caddy"])
def test_the_service_works_behind_a_proxy(tmp_path, proxy, prefix, kept):
    if not prefix and not kept:
        pytest.skip("nothing to take away")
    program = "nginx" if proxy is recipe_of_nginx else "caddy"
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} here")
    more = ("--root-path", prefix) if prefix else ()
    process = Process(tmp_path, None, *more)
    port = free_port()
    words = proxy(tmp_path, port, process.url, prefix, kept)
    url = f"http://127.0.0.1:{port}"
    headers = {"authorization": f"Bearer {process.token}"}
    with started(words, port, tmp_path / "proxy.log"):
        assert create(f"{url}{prefix}", LOCAL, headers).status_code == 201
        http, home = sign_in(url, prefix, process.token)
        with contextlib.closing(http):
            assert home.status_code == 200, home.text
            cookie = home.history[0].headers["set-cookie"]
            assert f"Path={prefix or '/'};" in f"{cookie};"
            # Every link of a page leads to something.
            page = http.get(f"{prefix}/experiments/news")
            assert page.status_code == 200
            links = re.findall(r'(?:href|src|data-source)="(/[^"]*)"', page.text)
            assert len(links) > 4
            for link in links:
                assert http.get(link).status_code == 200, link
            form = http.post(f"{prefix}/experiments/news/mode", data={"mode": "frozen"})
            assert 'class="mode frozen"' in form.text
            assert http.get(f"{prefix}/metrics").status_code == 401
    assert process.kill(signal.SIGTERM) == 0


# Finding S12
@pytest.mark.skipif(shutil.which("nginx") is None, reason="there is no nginx here")
def test_a_browser_signs_in_behind_a_plain_nginx(tmp_path):
    """It passes on another host than the browser's; the browser itself says that the form is the site's."""
    process, port = Process(tmp_path), free_port()
    server = f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {process.url}; }} }}"
    url = f"http://127.0.0.1:{port}"
    with started(nginx(tmp_path, server), port, tmp_path / "proxy.log"):
        for site, status in (("same-origin", 200), ("cross-site", 403)):
            http, home = sign_in(url, "", process.token, **{"sec-fetch-site": site})
            with contextlib.closing(http):
                assert home.status_code == status, home.text
        http, home = sign_in(url, "", process.token)
        with contextlib.closing(http):
            assert home.status_code == 403
            assert "a proxy must pass on the host" in home.json()["detail"]
    assert process.kill(signal.SIGTERM) == 0


# Finding S12
def test_metrics_have_an_address_of_their_own(tmp_path):
    port = free_port()
    process = Process(tmp_path, None, "--metrics", f"127.0.0.1:{port}")
    inside = f"http://127.0.0.1:{port}"
    assert httpx2.get(f"{inside}/metrics").status_code == 200
    assert httpx2.get(f"{inside}/healthz").status_code == 200
    headers = {"authorization": f"Bearer {process.token}"}
    assert httpx2.get(f"{inside}/v1/experiments", headers=headers).status_code == 404
    assert httpx2.get(f"{process.url}/metrics").status_code == 401
    assert httpx2.get(f"{process.url}/v1/experiments", headers=headers).status_code == 200
    assert process.kill(signal.SIGTERM) == 0


# Finding S12
def test_only_a_trusted_proxy_is_believed(tmp_path):
    trusting = Process(tmp_path)
    sealed = tmp_path / "sealed"
    sealed.mkdir()
    doubting = Process(sealed, None, "--trusted-proxies", "10.0.0.1")
    for process, secure in ((trusting, True), (doubting, False)):
        answer = httpx2.post(
            f"{process.url}/login",
            data={"token": process.token},
            headers={"x-forwarded-proto": "https"},
        )
        assert ("secure" in answer.headers["set-cookie"].lower()) is secure
        assert process.kill(signal.SIGTERM) == 0


# Finding S7
def test_the_first_token_is_made_once_the_port_is_bound(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = commands.tacit("serve", "--store", "s.db", "--port", port, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "Address already in use" in done.stderr
    assert list(tmp_path.iterdir()) == []
    process = Process(tmp_path)
    place = tmp_path / "s.db.first-token"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert process.token == place.read_text().strip()
    process.kill(signal.SIGTERM)
    # Another machine: the copy comes without tokens.
    other = tmp_path / "other"
    other.mkdir()
    commands.tacit("service", "backup", "copy.db", "--store", "s.db", cwd=tmp_path)
    restore = ("service", "restore", "../copy.db", "--store", "s.db")
    assert "expected the key of pseudonyms" in commands.tacit(*restore, cwd=other).stderr
    shutil.copy(tmp_path / "s.db.key", other)
    done = commands.tacit(*restore, cwd=other)
    assert done.returncode == 0, done.stderr
    process = Process(other)
    headers = {"authorization": f"Bearer {process.token}"}
    assert httpx2.get(f"{process.url}/v1/experiments", headers=headers).status_code == 200
    process.kill(signal.SIGTERM)


# Finding U4
def test_bad_commands_end_in_one_line_and_make_nothing(tmp_path):
    (tmp_path / "notdb.db").write_text(
        "this is no database, and it is long enough to be read as one"
    )
    before = sorted(tmp_path.iterdir())
    for words in (
        ("serve", "--host", "300.1.1.1", "--store", "new.db"),
        ("serve", "--store", "notdb.db", "--port", "0"),
        ("token", "create", "a", "--store", "typo.db"),
        ("token", "list", "--store", "typo.db"),
        ("service", "backup", "copy.db", "--store", "notdb.db"),
        ("serve", "--metrics", "here", "--store", "new.db", "--port", "0"),
        ("serve", "--root-path", "tacit", "--store", "new.db", "--port", "0"),
    ):
        done = commands.tacit(*words, cwd=tmp_path)
        assert done.returncode == 2, (words, done.stderr)
        assert len(done.stderr.strip().splitlines()) == 1, (words, done.stderr)
        assert sorted(tmp_path.iterdir()) == before, words


# Finding U4
def test_a_bad_token_is_called_so(tmp_path):
    service = Service(tmp_path / "s.db")
    answer = service.call("GET", "/v1/experiments", token="wrong").json()
    assert "unknown or revoked" in answer["detail"]
    assert (
        "expected a token:" in service.call("GET", "/v1/experiments", token=None).json()["detail"]
    )
    service.stop()


# Finding S15
def test_wrong_tokens_are_logged_and_slowed(tmp_path, capsys):
    service = Service(tmp_path / "s.db")
    answers = [service.call("GET", "/v1/experiments", token="plover") for _ in range(40)]
    codes = [answer.status_code for answer in answers]
    assert codes[:20] == [401] * 20
    assert codes.count(429) > 0
    assert answers[codes.index(429)].headers["retry-after"]
    assert service.call("GET", "/v1/experiments").status_code == 200
    said = capsys.readouterr().err
    lines = [json.loads(line) for line in said.splitlines()]
    assert any(line["event"] == "token" and line["address"] == "testclient" for line in lines)
    assert "plover" not in said
    service.stop()


# Finding S15
def test_small_things_are_answered_in_a_sentence(tmp_path):
    service = Service(tmp_path / "s.db")
    service.create(LOCAL)
    http, headers = service.http, {"authorization": f"Bearer {service.admin}"}
    assert http.get(f"/static/{'a' * 5000}").status_code == 404
    path = "/v1/experiments/news/decisions"
    kind = {**headers, "content-type": "application/json"}
    for body in (b'{"id": "\xff"}', b"\xff\xfe"):
        answer = http.post(path, content=body, headers=kind)
        assert answer.status_code == 400
        assert "codec" not in answer.text
    twice = http.post(path, content=b'{"id": "a", "id": "b"}', headers=kind)
    assert twice.status_code == 400
    assert "once" in twice.json()["detail"]
    nested = b'[{"id": "a", "value": {"red": 1, "red": 0}}]'
    assert (
        http.post("/v1/experiments/news/reports", content=nested, headers=kind).status_code == 400
    )
    both = {**kind, "transfer-encoding": "chunked", "content-length": "2"}
    assert http.post(path, content=b"{}", headers=both).status_code == 400
    # The page does not repeat what an address says, and asks before an option goes.
    http.post("/login", data={"token": service.admin})
    assert "plover" not in http.get("/experiments/news?problem=plover").text
    asked = http.post("/experiments/news/options", data={"do": "retire", "name": "red"})
    assert "for good" in asked.text
    facts = service.call("GET", "/v1/experiments/news").json()
    assert not any(option["retired"] for option in facts["options"])
    service.stop()


# Finding S15
def test_a_garbled_file_of_tokens_is_named(tmp_path):
    (tmp_path / "s.db").touch()
    (tmp_path / "s.db.tokens").write_text("{")
    done = commands.tacit("token", "list", "--store", "s.db", cwd=tmp_path)
    assert done.returncode == 2
    assert "s.db.tokens: not a file of tokens" in done.stderr


# Finding S15
def test_the_log_is_lines_of_json_with_each_request_on_demand(tmp_path):
    process = Process(tmp_path, None, "--access-log")
    headers = {"authorization": f"Bearer {process.token}"}
    create(process.url, LOCAL, headers)
    path = f"{process.url}/v1/experiments/news/decisions"
    decision = httpx2.post(path, json={"person": "plover"}, headers=headers).json()
    httpx2.post(f"{path}/{decision['id']}/shown", headers=headers)
    host, port = process.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as rude:
        rude.sendall(b"\x00\x01 nonsense\r\n\r\n")
        rude.recv(1000)
    assert process.kill(signal.SIGTERM) == 0
    text = (tmp_path / "serve.log").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    paths = [line["path"] for line in lines if line["event"] == "request"]
    assert paths[-1] == "/v1/experiments/{name}/decisions/{id}/shown"
    assert any(line["event"] == "server" for line in lines)
    assert process.token not in text
    assert "plover" not in text
    assert decision["id"] not in text


# Finding S2
def test_a_full_disk_is_not_ready(tmp_path):
    """A disk of its own if it can be made, else a limit on the size of files."""
    import resource

    service = Service(tmp_path / "s.db")
    service.create(LOCAL)
    service.http.post("/login", data={"token": service.admin})
    store, state = service.opened.manager.store, service.opened.app.state
    # What is written next must be new pages of the log.
    store.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert service.call("GET", "/readyz", token=None).status_code == 200
    store.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        state.readiness = (0.0, "")
        full = service.call("GET", "/readyz", token=None)
        assert full.status_code == 503
        assert "cannot be written" in full.json()["detail"]
        state.readiness = (0.0, "")
        assert "can be written" not in service.http.get("/experiments/news").text
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    state.readiness = (0.0, "")
    assert service.call("GET", "/readyz", token=None).status_code == 200
    service.stop()


# Finding P9
@pytest.mark.parametrize("answers", [0, 1, 3])
def test_the_parts_of_an_export_do_not_tell_who_answered(tmp_path, answers):
    """A central experiment's reports are hidden: an export is cut by the lines that it shows."""
    service = Service(tmp_path / "s.db")
    service.create(CENTRAL, reward={"kind": "binary", "report_after": 3600}, max_open=10_000)
    hosted = service.opened.manager.experiments["trusted"]
    ids = [f"d{i}" for i in range(1100)]
    now = hosted.core.now + 1
    hosted.clock = lambda: now
    made = [(Core.decide, (id,)) for id in ids[:500]]
    made += [(Core.report, (id, 1.0)) for id in ids[:answers]]
    made += [(Core.decide, (id,)) for id in ids[500:]]
    hosted.run_many(made)

    async def collect():
        return [part.count(b"\n") async for part in export._write_lines(hosted)]

    assert asyncio.run(collect()) == [1000, 100]
    service.stop()


# Finding U2
def test_nobody_waits_for_a_compiler(tmp_path, monkeypatch):
    """Compilation is stood in for by something that takes as long as the test wants."""
    service = Service(tmp_path / "s.db")
    manager, over = service.opened.manager, threading.Event()

    async def compile_for_long(request):
        await asyncio.to_thread(over.wait)

    monkeypatch.setattr(manager.warm_ups, "run", compile_for_long)
    headers = {"authorization": f"Bearer {service.admin}", "prefer": "respond-async, wait=0"}
    begun = service.http.post("/v1/experiments", json=LOCAL, headers=headers)
    assert begun.status_code == 202
    place = begun.headers["location"]
    assert begun.headers["retry-after"]
    assert service.call("GET", place).json() == {"name": "news", "status": "compiling"}
    assert service.call("POST", "/v1/experiments", LOCAL).status_code == 409
    bad = {**LOCAL, "name": "bad", "options": ["red"], "baseline": "none"}
    assert service.http.post("/v1/experiments", json=bad, headers=headers).status_code == 422
    assert service.call("GET", "/v1/experiments/none/creation").status_code == 404
    over.set()
    end = time.monotonic() + 60
    while service.call("GET", place).json()["status"] != "ready":
        assert time.monotonic() < end
        time.sleep(0.02)
    assert service.call("GET", "/v1/experiments/news").status_code == 200
    # What is wrong with the words is said at once, what is wrong with the model once it is made.
    wrong = {**LOCAL, "name": "wrong", "policy": {"name": "klucb-cf", "epsilon": -1.0}}
    assert service.http.post("/v1/experiments", json=wrong, headers=headers).status_code == 422
    wrong = {**LOCAL, "name": "wrong", "budget": {"day": 0.5}}
    over.clear()
    assert service.http.post("/v1/experiments", json=wrong, headers=headers).status_code == 202
    over.set()
    place = "/v1/experiments/wrong/creation"
    while (said := service.call("GET", place).json())["status"] == "compiling":
        assert time.monotonic() < end
        time.sleep(0.02)
    assert said["status"] == "failed"
    assert "what one report costs" in said["detail"]
    service.stop()


# Finding U2
def test_the_command_line_says_that_it_compiles(tmp_path, monkeypatch, capsys):
    from tacit.cli import service as cli

    answers = [
        httpx2.Response(202, json={"name": "news", "status": "compiling"}),
        httpx2.Response(404, json={"detail": "another process makes it"}),
        httpx2.Response(200, json={"name": "news", "status": "compiling"}),
        httpx2.Response(200, json={"name": "news", "status": "ready"}),
        httpx2.Response(200, json={"name": "news", "sentence": "All is well."}),
    ]
    monkeypatch.setattr(cli.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(httpx2, "request", lambda *_, **__: answers.pop(0))
    assert cli._make("http://x", "secret", LOCAL)["sentence"] == "All is well."
    assert capsys.readouterr().err == "compiling news, once on this machine\n"


# Finding S5
def test_a_clock_that_was_ahead_is_told_and_set_back(tmp_path, monkeypatch):
    year = 365 * 86_400_000
    service = Service(tmp_path / "s.db")
    service.create(LOCAL)
    assert "detail" not in service.call("GET", "/readyz", token=None).json()
    from tacit.serving import Experiment

    right = Experiment.clock
    with monkeypatch.context() as wrong:
        wrong.setattr(Experiment, "clock", staticmethod(lambda: right() + year))
        service.decide(shown=True)
    said = service.call("GET", "/readyz", token=None).json()
    assert said["status"] == "ready"
    assert "reset-clock" in said["detail"]
    (line,) = [
        line
        for line in service.call("GET", "/metrics").text.splitlines()
        if line.startswith('tacit_clock_lead_seconds{experiment="news"}')
    ]
    assert float(line.split()[1]) > 364 * 86_400
    service.stop()
    done = commands.tacit("service", "reset-clock", "--store", "s.db", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("news: set back by 31,5")
    again = Service(tmp_path / "s.db")
    again.admin = again.opened.tokens.create("other", ["admin"])
    assert "detail" not in again.call("GET", "/readyz", token=None).json()
    assert again.decide(shown=True)["report_at"] < time.time() + 2 * 3600
    again.stop()
