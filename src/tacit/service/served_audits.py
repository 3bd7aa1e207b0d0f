"""Audit what is served: `Learner` and the HTTP service are played on two neighbouring sets of people.

A set of people is a list of visits. Neighbours differ in one visit: its rewards, whether it was answered,
or its contexts too, as the guarantee's unit says. Each game begins with an empty store and plays the
product itself: modes, exploration, eligible subsets, side observations, and clients with either outbox. What
the guarantee's observer sees of a game is one row of numbers for :func:`tacit.privacy.audit`.

Time is virtual, so that arrival times are exact: it moves from one event to the next, and a file that is
written between the time of a report and its sending delays the report by `WRITE` seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import math
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx2
import msgspec
import numpy as np
from numpy.typing import NDArray

from tacit.client import AsyncClient, Outbox
from tacit.core.constraints import require
from tacit.core.json_codec import dumps
from tacit.core.policy import AnyPolicy
from tacit.core.registry import build, policy_named
from tacit.graphs import Graph
from tacit.privacy.auditing import AuditResult, audit, derive_seed
from tacit.service import ExperimentManager, Tokens, make_app
from tacit.service.messages import ExperimentRequest
from tacit.serving import Core, Experiment, Learner
from tacit.serving.storage import MemoryStore

FACTORS: dict[str, tuple[Any, ...]] = {
    "front": ("learner", "memory", "file"),
    "mode": ("learn", "shadow", "frozen", "off", "changes"),
    "explore": (0.0, 0.3),
    "eligible": ("all", "some"),
    "side": (False, True),
}
"""What is combined. A front is the learner, or HTTP with the outbox of its client."""
WRITE = 0.01
AFTER = 60.0
_CHANGES = ("learn", "shadow", "frozen", "off")
_NAMES = ("red", "green", "blue", "grey", "pink", "teal", "gold", "lime")
_BEGIN = 1_700_000_000.0
_VISITS = 5
_FASTER = 5
_WIDTH = 256
"""Numbers of one game that are looked at; what is not there is not-a-number."""
_NUMBER = re.compile(r"null|true|false|-?\d+\.?\d*(?:e[+-]?\d+)?")
_NAMELESS = re.compile(r'"(?:id|person|kind|reason|experiment)":"[^"]*",?')


@dataclass(frozen=True, kw_only=True)
class Served:
    """One combination of what can be switched on."""

    front: str = "learner"
    mode: str = "learn"
    explore: float = 0.0
    eligible: str = "all"
    side: bool = False

    def mode_of(self, turn: int) -> str:
        """Return the mode of a visit."""
        return _CHANGES[turn % len(_CHANGES)] if self.mode == "changes" else self.mode


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One person's visit: what they would answer (None for silence), and the candidates' contexts."""

    reward: float | None = 0.0
    others: float = 0.0
    """The reward of every other option, which side observations show."""
    contexts: tuple[tuple[float, ...], ...] | None = None


@dataclass(frozen=True, kw_only=True)
class ServedResult:
    """What the audits of all combinations found."""

    policy: str
    rows: tuple[tuple[Served, str, AuditResult], ...]
    """Each combination with the pair that was played and its audit."""
    alpha: float
    """The chance that any row of a true claim is refuted, all rows together."""
    released: bool
    """Whether anything was released or reported in any game."""
    met: int
    """How many pairs of values of two factors met in a combination ..."""
    meetings: int
    """... of so many that can be served together."""

    @property
    def worst(self) -> tuple[Served, str, AuditResult]:
        """The row with the largest lower bound."""
        return max(self.rows, key=lambda row: row[2].lower_bound)

    @property
    def verdict(self) -> str:
        """``"refuted"``, ``"not refuted"`` or ``"nothing was released"``."""
        if any(result.refuted for _, _, result in self.rows):
            return "refuted"
        return "not refuted" if self.released else "nothing was released"

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each combination and pair."""
        return [
            {
                **asdict(served),
                "pair": words,
                "verdict": result.verdict,
                "lower_bound": result.lower_bound,
            }
            for served, words, result in self.rows
        ]

    def sentence(self) -> str:
        """Return the finding in words."""
        served, words, result = self.worst
        switched = ", ".join(f"{name} {value}" for name, value in asdict(served).items())
        if self.verdict == "nothing was released":
            return "Nothing was released in any combination, so that nothing was tried."
        combinations = len({served for served, _, _ in self.rows})
        return (
            f"What is served is {self.verdict}, over {combinations} combinations, in which {self.met} "
            f"of {self.meetings} pairs of options meet, with confidence {100 * (1 - self.alpha):g}% for "
            f"all together. Worst: {words}, with {switched}. {result.sentence()}"
        )

    def to_json(self) -> str:
        """Return everything as JSON."""
        names = ("policy", "verdict", "alpha", "met", "meetings")
        return dumps({**{name: getattr(self, name) for name in names}, "rows": self.table()})


def audit_served(
    spec: Mapping[str, Any],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    runs: int = 150,
    alpha: float = 0.01,
    seed: int = 0,
    combinations: Sequence[Served] | int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ServedResult:
    """Try to refute a policy's claim by what its learner and service let out.

    Parameters
    ----------
    spec : mapping
        The policy's ``name`` and its parameters, as an experiment has them.
    epsilon, delta : float, optional
        The claim; by default what the policy guarantees for one visit.
    runs : int
        Games over HTTP on each of two sets of people, for each pair of each combination; five times as
        many with the learner, which is faster.
    alpha : float
        The chance of refuting a true claim, over all combinations and pairs together.
    seed : int
        Orders the combinations; the noise is the operating system's.
    combinations : sequence of Served or int, optional
        By default every two values of two factors meet in one of them (`combinations_of`); a number
        takes so many of these.
    progress : callable, optional
        Called with how many audits are done, and of how many.

    Examples
    --------
    >>> found = audit_served({"name": "klucb-cf", "epsilon": 1.0}, runs=40, combinations=[Served()])
    >>> found.verdict
    'not refuted'
    """
    game = Game(spec)
    stated = game.policy.guarantee(_VISITS)
    claimed = stated.epsilon if epsilon is None else epsilon
    rule = f"given and finite, because {game.policy.name} claims no finite one"
    require("audit_served", "epsilon", rule, math.isfinite(claimed), claimed)
    allowed = (stated.delta if epsilon is None else 0.0) if delta is None else delta
    if combinations is None or isinstance(combinations, int):
        chosen: Sequence[Served] = combinations_of(game, seed)[:combinations]
    else:
        chosen = combinations
    pairs = [(served, *pair) for served in chosen for pair in game.pairs(served, stated.unit)]
    require("audit_served", "combinations", "that can be served", bool(pairs), len(pairs))
    rows = []
    with game:
        for i, (served, words, left, right) in enumerate(pairs):
            result = audit(
                partial(game.play, served),
                left,
                right,
                epsilon=claimed,
                delta=allowed,
                runs=runs * (_FASTER if served.front == "learner" else 1),
                alpha=alpha / len(pairs),
                seed=derive_seed(seed, i),
            )
            rows.append((served, words, result))
            if progress is not None:
                progress(len(rows), len(pairs))
    every = set().union(*map(_twos, _servable(game)))
    return ServedResult(
        policy=game.policy.name,
        rows=tuple(rows),
        alpha=alpha,
        released=game.released,
        met=len(every & set().union(*map(_twos, chosen))),
        meetings=len(every),
    )


def combinations_of(game: Game, seed: int = 0) -> list[Served]:
    """Return few combinations in which every two values that can be served together meet.

    Those that bring most pairs together come first.

    Parameters
    ----------
    game : Game
        Says what its policy can be served with.
    seed : int
        Breaks ties.
    """
    every = _servable(game)
    np.random.default_rng(seed).shuffle(every)
    wanted = {two for served in every for two in _twos(served)}
    chosen = []
    while wanted:
        best = max(every, key=lambda served: len(_twos(served) & wanted))
        chosen.append(best)
        wanted -= _twos(best)
    return chosen


def _servable(game: Game) -> list[Served]:
    return [
        served
        for values in itertools.product(*FACTORS.values())
        if game.serves(served := Served(**dict(zip(FACTORS, values, strict=True))))
    ]


def _twos(served: Served) -> set[Any]:
    return set(itertools.combinations(asdict(served).items(), 2))


class Game:
    """A policy that is served afresh for every set of people.

    Parameters
    ----------
    spec : mapping
        The policy's ``name`` and parameters.
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        given = dict(spec)
        kind = policy_named(given.pop("name"))
        self.contextual = kind.setting == "users"
        rule = "of the settings arms or users, which are served"
        require("audit_served", "policy", rule, kind.setting in ("arms", "users"), kind.name)
        graph = given.get("graph")
        if graph is not None and not isinstance(graph, Graph):
            graph = Graph.from_spec(graph)
        n = int(given.get("n_arms") or (3 if graph is None else graph.n_nodes))
        rule = f"at most {len(_NAMES)}, so that a game is small"
        require("audit_served", "n_arms", rule, n <= len(_NAMES), n)
        self.options = list(_NAMES[:n])
        self.people = ["ann", "bob"] if self.contextual else []
        sizes = {"n_users": 2, "dimension": 2} if self.contextual else {"n_arms": n}
        described: Any = kind
        known = {field.name for field in fields(described)}
        public = {name: x for name, x in {**sizes, "horizon": _VISITS}.items() if name in known}
        self.policy: AnyPolicy = build(kind, public, given)
        self.spec = {**public, **spec}
        self.shows: Any = getattr(self.policy, "shown_with", None)
        self.joined_by = getattr(self.policy, "joined_by", "")
        self.central = self.policy.guarantee(1).trust == "central"
        self.released = False
        self.now = _BEGIN

    def __enter__(self) -> Game:
        self._ends = contextlib.ExitStack()
        folder = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self._folder = Path(self._ends.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        self._ends.enter_context(patch.object(Experiment, "clock", self.milliseconds))
        self._runner = self._ends.enter_context(asyncio.Runner())
        tokens = Tokens(self._folder / "tokens")
        self._token = tokens.create("audit", ["admin"])
        self._app = make_app(ExperimentManager(MemoryStore(), bytes(32)), tokens, rate=1e12)
        return self

    def __exit__(self, *_: Any) -> None:
        self._ends.close()

    def milliseconds(self) -> int:
        """Return the virtual time as the service counts it."""
        return round(1000 * self.now)

    def seconds(self) -> float:
        """Return the virtual time as a client counts it."""
        return self.now

    @property
    def hub(self) -> int:
        """The option that shows most others: what the baseline serves."""
        if self.shows is None:
            return 0
        return max(range(len(self.options)), key=lambda option: len(self.shows(option)))

    def serves(self, served: Served) -> bool:
        """Return whether the policy can be served so."""
        chooses = self.contextual or not getattr(self.policy, "learns_from_any", True)
        several = self.shows is not None and len(self.shows(self.hub)) > 1
        plain = served.explore == 0 and served.mode in ("learn", "frozen", "off")
        joined = served.front != "learner" or not self.joined_by
        return (plain or not chooses) and (several or not served.side) and joined

    def pairs(self, served: Served, unit: str) -> Iterator[tuple[str, list[Visit], list[Visit]]]:
        """Return neighbouring sets of people, in words and as visits."""
        east, north = ((1.0, 0.0), (0.0, 1.0)), ((0.0, 1.0), (1.0, 0.0))
        usual = Visit(contexts=east if self.contextual else None)
        people = [usual] * _VISITS
        right = replace(usual, reward=1.0, others=1.0 if unit != "reward" else 0.0)
        if unit == "visit":
            right = replace(right, contexts=north)
        yield "first visit: 0 against 1", people, [right, *people[1:]]
        # A device that runs in this process has no client that answers for a silent person.
        if self.central or served.front != "learner":
            silent = replace(usual, reward=None)
            answered = replace(usual, reward=1.0)
            rest = people[2:]
            yield (
                "second visit: silence against 1",
                [usual, silent, *rest],
                [usual, answered, *rest],
            )
        if self.central:
            # What is served may differ from what was wished only after the first block.
            yield "third visit: 0 against 1", people, [*people[:2], right, *people[3:]]

    def play(
        self, served: Served, visits: Sequence[Visit], runs: int, seed: int = 0
    ) -> NDArray[np.float64]:
        """Play `runs` games; return what the observer sees of each, one row a game.

        The seed is not used: a service draws its noise from the operating system.
        """
        rows = np.full((runs, _WIDTH), np.nan)
        for row in rows:
            self.now = _BEGIN
            if served.front == "learner":
                seen = self._play_learner(served, visits)
            else:
                seen = self._runner.run(self._play_http(served, visits))
            row[: len(seen)] = seen[:_WIDTH]
        return rows

    def _offered(self, served: Served, turn: int) -> list[str] | None:
        if served.eligible == "all" or self.contextual:
            return None
        # Every other time one option is missing; the baseline is always there.
        missing = (self.hub + 1 + turn // 2) % len(self.options)
        some = [name for i, name in enumerate(self.options) if i != missing or i == self.hub]
        return some if turn % 2 else None

    def _contexts(self, visit: Visit) -> dict[str, list[float]] | None:
        if visit.contexts is None:
            return None
        return dict(zip(self.options, map(list, visit.contexts), strict=False))

    def _value(self, served: Served, visit: Visit, option: str) -> Any:
        """Return what a central report says: a reward, or those of all options that were shown."""
        if not served.side:
            return visit.reward
        place = self.options.index(option)
        shown = sorted({place, *self.shows(place)})
        return {self.options[i]: visit.reward if i == place else visit.others for i in shown}

    def _play_learner(self, served: Served, visits: Sequence[Visit]) -> list[float]:
        store = MemoryStore()
        given: dict[str, Any] = {}
        if self.people:
            given["people"] = self.people
        else:
            given |= {"options": self.options, "baseline": self.options[self.hub]}
        learner = Learner(
            self.policy,
            explore=served.explore,
            store=store,
            report_after=AFTER,
            grace=0.0,
            default=0.0,
            key=bytes(32),
            **given,
        )
        seen: list[float] = []
        for turn, visit in enumerate(visits):
            learner.set_mode(served.mode_of(turn))
            decision = learner.decide(
                eligible=self._offered(served, turn),
                person=self.people[turn % 2] if self.people else None,
                contexts=self._contexts(visit),
            )
            seen += [self.options.index(decision.option), decision.probability]
            self.now += AFTER / 2
            asked = decision.instructions is not None
            seen.append(float(asked))
            if asked and not (self.central and visit.reward is None):
                report = decision.device.report(visit.reward)
                if self.central:
                    report["value"] = self._value(served, visit, decision.option)
                else:
                    seen += self._numbers(json.dumps(report["value"]))
                    self.released = True
                learner.learn(report)
            self.now += AFTER
            learner.tick()
        for event in store.events("learner", 0):
            seen += map(float, event.body.get("released", ()))
            self.released |= "released" in event.body
        estimates = learner._core.decider.estimates(learner._core.tallies) or []
        seen += self._numbers(json.dumps([each and list(each) for each in estimates]))
        learner.close()
        return seen

    async def _play_http(self, served: Served, visits: Sequence[Visit]) -> list[float]:
        manager = self._app.state.manager = ExperimentManager(MemoryStore(), bytes(32))
        described = {
            "name": "x",
            "policy": self.spec,
            "reward": {"kind": "bounded", "report_after": AFTER, "default": 0.0},
            "explore": served.explore,
            "grace": 0.0,
        }
        if self.people:
            edges = {"edges": [self.people]} if self.joined_by else {}
            described |= {"people": self.people, **edges}
        else:
            described |= {"options": self.options, "baseline": self.options[self.hub]}
        served_by = manager.create(msgspec.convert(described, ExperimentRequest))
        file = self._folder / "outbox.db" if served.front == "file" else None
        outbox = Outbox(file)
        wire = _Wire(httpx2.ASGITransport(self._app), self.seconds, file)
        client = AsyncClient(
            "http://audit", "x", token=self._token, max_epsilon=None, outbox=outbox, transport=wire
        )
        client._flows.clock = self.seconds
        seen: list[float] = []
        for turn, visit in enumerate(visits):
            mode = served.mode_of(turn)
            if mode != served_by.core.mode:
                await wire.ask(self._token, "PATCH", "", {"mode": mode})
            decision = await client.decide(
                person=self.people[turn % 2] if self.people else None,
                eligible=self._offered(served, turn),
                contexts=self._contexts(visit),
            )
            seen += [self.options.index(decision.option), decision.probability]
            owed = await client.shown(decision)
            seen.append(float(owed))
            self.now += AFTER / 2
            if owed and visit.reward is not None and not (served.side and self.central):
                client.reward(decision, visit.reward)
            seen += await self._sent(client, wire, owed)
            if owed and served.side and visit.reward is not None:
                value = self._value(served, visit, decision.option)
                report = {"v": 1, "id": decision.id, "value": value}
                await wire.ask(self._token, "POST", "/reports", report)
            self.now += AFTER
            await served_by.ask(Core.tick)
        for place in ("/released", "/statistics"):
            told = await wire.ask(self._token, "GET", place)
            self.released |= '"kind":"release' in told or '"kind":"report' in told
            seen += self._numbers(told)
        await client.close()
        outbox.close()
        if file is not None:
            file.unlink()
        return seen

    async def _sent(self, client: AsyncClient, wire: _Wire, owed: bool) -> list[float]:
        """Let a report go out at its time; return when it left and, if it is seen, what it says."""
        wire.reports.clear()
        # The first flush finds nothing due; from then on the outbox must not change.
        due = await client.flush()
        while due is not None:
            self.now = max(self.now, due)
            wire.mark()
            due = await client.flush()
        if not owed:
            return [0.0] * 4
        at, body = wire.reports[0] if wire.reports else (math.nan, b"")
        value = [] if self.central else self._numbers(dumps(json.loads(body)["value"]))
        return [len(wire.reports), at - _BEGIN, 0.0 if self.central else len(body), *value]

    def _numbers(self, text: str) -> list[float]:
        """Return the numbers of a text in order; names of options are numbers too."""
        text = _NAMELESS.sub("", text)
        for i, name in enumerate(self.options):
            text = text.replace(f'"{name}"', str(i))
        words = {"null": -7.0, "true": 1.0, "false": 0.0}
        return [words[each] if each in words else float(each) for each in _NUMBER.findall(text)]


class _Wire(httpx2.AsyncBaseTransport):
    """The network between client and service: it sees when a report leaves, and its bytes."""

    def __init__(
        self, inner: httpx2.ASGITransport, clock: Callable[[], float], file: Path | None
    ) -> None:
        self._inner, self._clock, self._file = inner, clock, file
        self.reports: list[tuple[float, bytes]] = []
        self.mark()

    def mark(self) -> None:
        """Note what the outbox holds when a report is due."""
        self._held = b"" if self._file is None else self._file.read_bytes()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Pass a request on; note a report."""
        if request.url.path.endswith("/reports"):
            wrote = self._file is not None and self._file.read_bytes() != self._held
            self.reports.append((self._clock() + WRITE * wrote, request.content))
        return await self._inner.handle_async_request(request)

    async def ask(self, token: str, method: str, place: str, body: Any = None) -> str:
        """Ask the service what a client does not, and return the answer."""
        request = httpx2.Request(
            method,
            f"http://audit/v1/experiments/x{place}",
            json=body,
            headers={"authorization": f"Bearer {token}"},
        )
        answer = await self._inner.handle_async_request(request)
        told = (await answer.aread()).decode()
        require("audit_served", f"{method} {place}", "to succeed", answer.is_success, told)
        return told
