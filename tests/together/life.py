"""A seeded life: commands drawn from what a case switches on, done, and checked after each step."""

from __future__ import annotations

import contextlib
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from together.fronts import NAMES, PEOPLE, RefusedCommandError, World, cap_unit, front_of
from together.model import Model, ViolationError
from together.options import CONTEXTS, VISITS, Case

Command = tuple[Any, ...]

_STEPS = 2**22
_MODES = ("learn", "frozen", "shadow", "off")
_LATER = 6


class Life:
    """One product and its model; `do` a command, or `draw` the next."""

    def __init__(self, case: Case, folder: Path, server: Any = None) -> None:
        self.case = case
        self.world = World(case, folder, server).__enter__()
        try:
            self.front = front_of(self.world)
        except BaseException:
            self.world.__exit__()
            raise
        self.model = Model(case, self.world.now)
        self.kept: dict[str, Any] = {}
        self._made = self._saved = 0
        self._drawn: dict[str, Sequence[float]] = {}
        self._asked: dict[str, dict[str, Any]] = {}
        self.seen: Counter[str] = Counter()
        """What happened, so that a test can tell whether there was anything to check."""

    def close(self) -> None:
        try:
            self.front.close()
        finally:
            self.world.__exit__()

    # Drawing

    def draw(self, rng: random.Random) -> Command:
        """Return a command that makes sense now, or nearly."""
        verb = rng.choice(self._verbs())
        return tuple(getattr(self, f"_draw_{verb}", lambda _: (verb,))(rng))

    def _verbs(self) -> list[str]:
        case, front = self.case, self.front
        often = {
            "decide": 30,
            "report": 24,
            "show": 5,
            "repeat": 3,
            "cancel": 1,
            "wait": 6,
            "look": 2,
        }
        again = {"restart": 1, "crash": 1, "save": 2, "load": 1, "backup": 2, "restore": 1}
        wanted = {"save": ("save", "load"), "restore": ("backup", "restore")}.get(
            case["again"], (case["again"],)
        )
        often |= {verb: share for verb, share in again.items() if verb in wanted}
        changing = "change" in (case["modes"], case["options"]) or case["budget"] == "later"
        often["change"] = 4 if changing else 1
        if "save" not in self.kept:
            often.pop("load", None)
        if "backup" not in self.kept:
            often.pop("restore", None)
        return [verb for verb, n in often.items() if verb in front.verbs for _ in range(n)]

    def _draw_decide(self, rng: random.Random) -> Command:
        known = [made for made in self.model.h.made.values() if not made.is_old]
        if known and rng.random() < 0.05:
            again = rng.choice(known[-5:])
            return ("decide", again.id, self._asked[again.id])
        self._made += 1
        person: Any = rng.choice(PEOPLE)
        contexts, eligible = None, None
        options = [each for each in self.model.h.options if each not in self.model.h.retired]
        if self.case["policy"] in CONTEXTS:
            options = rng.sample(["tea", "milk", "mate"], rng.randint(1, 3))
            contexts = {name: [rng.randint(1, 8) / 8] for name in options}
        elif rng.random() < 0.2:
            person = None
        if self.case["eligible"] == "some" and rng.random() < 0.5:
            chosen = set(rng.sample(options, rng.randint(1, len(options))))
            eligible = [name for name in options if name in chosen]
        request = {
            "person": person,
            "eligible": eligible,
            "contexts": contexts,
            "shown": rng.random() < 0.8,
        }
        return ("decide", f"d{self._made}", request)

    def _some(self, rng: random.Random, good: Any) -> str:
        fits = [made.id for made in self.model.h.made.values() if good(made)]
        late = fits[-_LATER:]
        return rng.choice(late) if late else "nobody"

    def _draw_report(self, rng: random.Random) -> Command:
        wild = rng.random() < 0.1
        id = self._some(rng, lambda made: wild or self.model.is_awaited(made.id))
        values = [rng.randrange(_STEPS) / _STEPS for _ in NAMES]
        return ("report", id, values[: len(NAMES) if self.case["side"] == "shown" else 1])

    def _draw_repeat(self, rng: random.Random) -> Command:
        return ("repeat", self._some(rng, lambda made: made.rewards is not None))

    def _draw_show(self, rng: random.Random) -> Command:
        return ("show", self._some(rng, lambda made: not made.is_shown))

    def _draw_cancel(self, rng: random.Random) -> Command:
        return ("cancel", self._some(rng, lambda made: not made.is_over))

    def _draw_wait(self, rng: random.Random) -> Command:
        return ("wait", rng.choice((1.0, 30.0, 61.0, 75.0, 75.0, 3_600.0, 50_000.0)))

    def _draw_change(self, rng: random.Random) -> Command:
        case, h = self.case, self.model.h
        left = [name for name in h.options if name not in h.retired]
        new = f"new{len(h.options)}"
        unit = cap_unit(case)
        good: list[tuple[str, Any]] = []
        bad: list[tuple[str, Any]] = [("add_options", NAMES[:1]), ("retire_options", ["none"])]
        if case["modes"] == "change":
            good.append(("mode", rng.choice(_MODES)))
        if case["options"] == "change":
            good += [("add_options", [new])]
            good += [("retire_options", [rng.choice(left)])] if len(left) > 2 else []
        if case["budget"] == "later":
            caps = {"lifetime": 3.0 * unit, "month": 5.0 * unit, "day": 2.0 * unit}
            names = rng.sample(list(caps), rng.randint(0, 2))
            good.append(("budget", {name: caps[name] for name in names}))
        if "is_makeable" in dir(self.front):
            bad += [("edges", [["ann", "nobody"]]), ("retire_options", left or ["none"])]
        parts = rng.sample(good, min(len(good), rng.randint(1, 2)))
        if not parts or rng.random() < 0.3:
            parts.append(rng.choice(bad))
        if "is_makeable" not in dir(self.front):
            parts = parts[-1:]
        return ("change", dict(parts))

    def _draw_save(self, rng: random.Random) -> Command:
        self._saved += 1
        return ("save", f"saved{self._saved}")

    def _draw_load(self, rng: random.Random) -> Command:
        return ("load", self.kept["save"][0])

    # Doing

    def do(self, command: Command) -> None:
        """Carry out a command and check everything that can be checked after it."""
        verb, *given = command
        try:
            getattr(self, f"_do_{verb}")(*given)
        except ViolationError:
            raise
        except Exception as error:
            raise ViolationError("faults", f"{verb}: {type(error).__name__}: {error}") from error
        self.model.read_releases(self.world.released, is_stated=self._states_more)
        self.seen[verb] += 1
        self.seen["release"] = len(self.world.released)
        if verb == "wait":
            self._check_numbers()

    def _states_more(self) -> bool:
        stated = self.front.guarantee()
        more = any("loaded" in each for each in stated.not_protected or ())
        return more or stated.epsilon > 1.01 * self.model.epsilon

    def _do_decide(self, id: str, request: dict[str, Any]) -> None:
        model = self.model
        self._asked[id] = request
        try:
            answer = self.front.decide(id, **request)
        except RefusedCommandError as refused:
            if request["person"] is None and model.h.caps:
                return
            if id in model.h.made and model.h.made[id].is_doubtful:
                return
            unknown = request["eligible"] and set(request["eligible"]) & set(model.h.retired)
            if unknown or (
                request["eligible"]
                and not request["contexts"]
                and set(request["eligible"]) - set(model.h.options)
            ):
                return
            raise ViolationError("service", f"{id} was not decided: {refused}") from None
        self.seen["budget"] += answer.reason == "budget"
        shown = request["shown"] and self.front.is_announced(id)
        model.decided(id, {**request, "shown": shown}, answer)

    def _do_show(self, id: str) -> None:
        made = self.model.h.made.get(id)
        try:
            answer = self.front.show(id)
        except RefusedCommandError as refused:
            over = made is None or made.is_over or made.is_cancelled or made.is_doubtful
            over = over or (self.front.is_device and self.model.is_due_now(id))
            if made is not None and made.is_asked and not over:
                raise ViolationError("service", f"{id} was not shown: {refused}") from None
            return
        if made is None:
            raise ViolationError("service", f"{id} was shown and never decided")
        if self.front.is_announced(id):
            self.model.shown(id, answer)

    def _do_report(self, id: str, values: Sequence[float]) -> None:
        made = self.model.h.made.get(id)
        if made is None or not made.answer.is_asked:
            return
        if made.rewards is not None and not made.is_over:
            return self._do_repeat(id)
        seen = self.model.shows.get(made.answer.option, [made.answer.option])
        # A device draws once, whatever became of its report.
        rewards = dict(zip(seen, self._drawn.setdefault(id, values), strict=False))
        awaited = self.model.is_awaited(id)
        try:
            status = self.front.report(id, rewards, made.answer.option)
        except RefusedCommandError as refused:
            if awaited:
                raise ViolationError("reports", f"{id} was refused: {refused}") from None
            return
        late = self.front.is_device and self.model.is_due_now(id)
        if awaited and status not in ("learned", "held") and not late:
            raise ViolationError("reports", f"{id} was awaited, and is {status}")
        self.model.reported(id, rewards, status)

    def _do_repeat(self, id: str) -> None:
        made = self.model.h.made.get(id)
        if made is None or made.rewards is None:
            return
        before = self.front.facts()
        with contextlib.suppress(RefusedCommandError):
            self.front.repeat(id)
        self._check_same("repeat", before)

    def _do_cancel(self, id: str) -> None:
        if id not in self.model.h.made:
            return
        try:
            self.front.cancel(id)
        except RefusedCommandError:
            return
        self.model.cancelled(id)

    def _do_wait(self, seconds: float) -> None:
        self.front.wait(seconds)
        self.model.waited(self.world.now)

    def _do_change(self, wanted: dict[str, Any]) -> None:
        makeable = True
        if "budget" in wanted and "is_makeable" in dir(self.front):
            makeable = self.front.is_makeable({"budget": wanted["budget"]})
        before = self.front.facts()
        try:
            self.front.change(wanted)
        except RefusedCommandError:
            self.seen["refused"] += 1
            self._check_same("a refused change", before)
            return
        if not makeable:
            raise ViolationError(
                "change", f"{wanted} is refused when made, and accepted as a change"
            )
        self.model.changed(wanted)

    def _check_same(self, what: str, before: Any) -> None:
        after = self.front.facts()
        if before != after:
            raise ViolationError("nothing changes", f"after {what}: {_differences(before, after)}")

    def _do_restart(self) -> None:
        self._go_on(self.front.restart)

    def _do_crash(self) -> None:
        self._go_on(self.front.crash)

    def _go_on(self, begin_anew: Any) -> None:
        before = self.front.facts()
        begin_anew()
        self._check_same("a restart", before)
        for made in list(self.model.h.made.values())[-3:]:
            if not (made.is_over or made.is_cancelled or made.is_old):
                self._do_decide(made.id, self._asked[made.id])

    def _do_save(self, name: str) -> None:
        self.front.save(name)
        self.kept["save"] = (name, self.model.fork())

    def _do_load(self, name: str) -> None:
        if self.kept.get("save", ("",))[0] != name:
            return
        self.front.load(name)
        self.model.put_back(self.kept["save"][1], is_load=True)

    def _do_backup(self) -> None:
        self.front.backup()
        self.kept["backup"] = self.model.fork()

    def _do_restore(self) -> None:
        if "backup" in self.kept:
            self.front.restore()
            self.model.put_back(self.kept.pop("backup"), is_load=False)

    # Looking

    def _do_look(self) -> None:
        self._check_numbers()
        self._check_pages()
        if "export" in dir(self.front):
            self._check_export()

    def _check_numbers(self) -> None:
        said = self.front.tallies()
        if said is None:
            return
        for option, row in self.model.tallies().items():
            found = {key: said[option][key] for key in row}
            if found != row and self.model.h.is_exact:
                raise ViolationError("numbers", f"{option!r}: {found} is shown, {row} is true")
            if self.model.is_local is False and said[option]["learned"] > said[option]["shown"]:
                raise ViolationError(
                    "numbers", f"{option!r}: more learned than shown: {said[option]}"
                )

    def _secrets(self) -> dict[str, str]:
        """Return what must stand nowhere, as it would be written: rewards, and contexts of visits."""
        found: dict[str, str] = {}
        if self.model.is_local:
            return found
        for made in self.model.h.made.values():
            for value in (made.rewards or {}).values():
                found[json.dumps(value)] = f"the reward of {made.id}"
        return found

    def _check_pages(self) -> None:
        secrets = self._secrets()
        for place, text in self.front.pages().items():
            for secret, whose in secrets.items():
                if len(secret) > 8 and secret in text:
                    raise ViolationError("pages", f"{place} shows {whose}, {secret}")

    def _check_export(self) -> None:
        pieces = self.front.export()
        sizes = [len(piece) for piece in pieces]
        if len(set(sizes[:-1])) > 1:
            raise ViolationError("export", f"pieces of {sizes} lines: framing tells what is hidden")
        lines = [line for piece in pieces for line in piece]
        told = [line["values"] for line in lines if line["kind"] == "release"]
        if told != self.model.h.releases and self.model.h.is_exact:
            raise ViolationError("export", f"{told} is told, {self.model.h.releases} was released")
        made = [line["id"] for line in lines if line["kind"] == "decision"]
        if sorted(made) != sorted(self.model.h.made) and self.model.h.is_exact:
            raise ViolationError(
                "export", f"decisions {made} are told, not {list(self.model.h.made)}"
            )
        for line in lines:
            if self.case["policy"] in VISITS and line.get("contexts") is not None:
                raise ViolationError(
                    "export", f"contexts of {line['id']}, where a visit is protected"
                )
            if not self.model.is_local and "value" in line:
                raise ViolationError("export", f"a reward of a trusted server is told: {line}")


def _differences(before: Any, after: Any) -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [key for key in before if before[key] != after.get(key)]
        return ", ".join(f"{key}: {_differences(before[key], after.get(key))}" for key in keys)
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return "; ".join(_differences(a, b) for a, b in pairs if a != b)
    return f"{before} became {after}"


def live(case: Case, seed: int, steps: int, folder: Path, server: Any = None) -> Counter[str]:
    """Live so many steps and return what happened; a violation names the commands that led to it."""
    rng, done = random.Random(f"{seed} {sorted(case.items())}"), list[Command]()
    life = Life(case, folder, server)
    try:
        for _ in range(steps):
            command = life.draw(rng)
            done.append(command)
            life.do(command)
        done.append(("look",))
        life.do(done[-1])
    except ViolationError as error:
        error.commands = done  # type: ignore[attr-defined]
        raise
    finally:
        life.close()
    return life.seen


def replay(case: Case, commands: Sequence[Command], folder: Path, server: Any = None) -> None:
    """Carry out commands as they were written down."""
    life = Life(case, folder, server)
    try:
        for command in commands:
            life.do(tuple(command))
    finally:
        life.close()
