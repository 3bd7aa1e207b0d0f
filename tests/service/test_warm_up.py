"""The first experiment of its kind on a machine: what it calls is compiled while others go on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from service.conftest import CENTRAL, LOCAL, Service
from service.processes import Process, Waiting, create
from tacit.core import kernels
from tacit.serving.description import Description

PLAIN = {"name": "plain", "policy": {"name": "ucb1"}, "options": ["red", "green"]}
PEOPLE = ["ann", "bob"]
KINDS = [
    {**LOCAL, "explore": 0.1},
    CENTRAL,
    {
        "name": "people",
        "policy": {
            "name": "goblin",
            "dimension": 2,
            "reward": "binary",
            "privacy": {"kind": "per-reward", "epsilon": 1.0},
        },
        "people": PEOPLE,
        "edges": [PEOPLE],
    },
]

PLAYED = """
import json, sys
from pathlib import Path
from tacit.core import kernels
from tacit.service.warm_up import warm_up
from tacit.serving.description import read_request
from service.conftest import Service

kinds, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
for kind in kinds:
    warm_up(read_request(kind))
asked, compile = [], kernels._Kernel.compile

def noted(self, sig):
    if tuple(kernels._signature(sig)[0]) not in self.overloads:
        asked.append(self.py_func.__qualname__)
    return compile(self, sig)

kernels._Kernel.compile = noted
for kind in kinds:
    name = kind["name"]
    path = f"/v1/experiments/{name}"
    service = Service(folder / f"{name}.db")
    service.create(kind)
    people = "people" in kind
    asks = {"person": "ann", "contexts": {"x": [1, 0], "y": [0, 1]}} if people else {}
    more = {"add_people": {"eve": ["ann"]}} if people else {"add_options": ["more"]}
    for _ in range(2):
        decision = service.decide(name, shown=True, **asks)
        assert service.report(decision, 1.0, name).status_code == 200
        assert service.call("GET", f"{path}/statistics").status_code == 200
        answer = service.call("PATCH", path, more)
        assert answer.status_code == 200, answer.text
        more = {"edges": [["ann", "eve"]]} if people else {"retire_options": ["red"]}
    service.opened.manager.experiments[name].verify()
    service.stop()
print(asked)
"""


def test_a_rehearsal_loads_all_that_an_experiment_calls(tmp_path):
    here = str(Path(__file__).parents[1])
    command = [sys.executable, "-W", "ignore", "-c", PLAYED, json.dumps(KINDS), str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": here}
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_what_is_not_kept_is_not_compiled_where_that_is_forbidden(tmp_path, monkeypatch):
    if kernels.INTERPRETED:
        pytest.skip("nothing is compiled")
    file = tmp_path / "unknown_kernel.py"
    file.write_text("from tacit.core.kernels import kernel\n@kernel\ndef new(x):\n    return x\n")
    monkeypatch.syspath_prepend(tmp_path)
    from unknown_kernel import new

    with kernels.cached_only() as lacking, pytest.raises(RuntimeError, match="compiled before"):
        new(1)
    assert lacking == ["new"]
    assert new(1) == 1
    with kernels.cached_only() as lacking:
        assert new(2) == 2
    assert lacking == []


def test_a_model_of_many_people_is_built_once_and_beside_the_loop(tmp_path, monkeypatch):
    people, built, build = [f"p{i}" for i in range(40)], [], Description.make_decider

    def noted(wanted):
        if len(wanted.people) == len(people):
            try:
                built.append(asyncio.get_running_loop())
            except RuntimeError:
                built.append(None)  # a thread without a loop
        return build(wanted)

    monkeypatch.setattr(Description, "make_decider", noted)
    service = Service(tmp_path / "s.db")
    service.create(KINDS[-1], people=people, edges=[people[:2]])
    assert built == [None]
    asked = {"person": people[-1], "contexts": {"x": [1, 0], "y": [0, 1]}}
    decision = service.decide("people", shown=True, **asked)
    assert service.report(decision, 1.0, "people").json()["status"] == "learned"
    service.opened.manager.experiments["people"].verify()
    again = service.call("POST", "/v1/experiments", {**KINDS[-1], "people": people})
    assert again.status_code == 409
    service.stop()


@pytest.mark.slow
@pytest.mark.skipif(kernels.INTERPRETED, reason="nothing is compiled")
def test_nobody_waits_while_an_experiment_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    process = Process(tmp_path, afresh=True)
    headers = {"authorization": f"Bearer {process.token}"}
    url = process.url

    assert create(url, PLAIN, headers).status_code == 201
    others = [
        Waiting(url, headers, "GET", "/healthz"),
        Waiting(url, headers, "POST", "/v1/experiments/plain/decisions"),
    ]
    begun = time.monotonic()
    with ThreadPoolExecutor(2) as both:
        answers = [both.submit(create, url, LOCAL, headers) for _ in range(2)]
        made = sorted(answer.result().status_code for answer in answers)
    took = time.monotonic() - begun
    slow = [each.stop() for each in others]
    assert made == [201, 409]
    # A machine that does other things is slow in both.
    assert max(slow) < max(0.25, took / 10), (slow, took)

    # It ends in time while another one is being compiled, and takes the compiler with it.
    told: list[int] = []
    late = threading.Thread(target=lambda: told.append(create(url, CENTRAL, headers).status_code))
    late.start()
    pid = process.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children")
    until = time.monotonic() + 20
    while not (helpers := children.read_text().split()) and time.monotonic() < until:
        time.sleep(0.02)
    begun = time.monotonic()
    assert process.kill(signal.SIGTERM) == 0
    assert time.monotonic() - begun < 10
    late.join()
    assert (told, len(helpers)) == ([503], 1)
    while Path(f"/proc/{helpers[0]}").exists() and time.monotonic() < until + 5:
        time.sleep(0.02)
    assert not Path(f"/proc/{helpers[0]}").exists()
