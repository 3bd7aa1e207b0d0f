"""One repetition of a population in pieces, on any engine, kept now and then, and gone on with when lost."""

from __future__ import annotations

import dataclasses
import hashlib
import pickle
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tacit.core.policy import AnyEnvironment, AnyPolicy
from tacit.engines import Engine, code_stamp
from tacit.populations.actors import LostError
from tacit.populations.partitions import Population, load_arrays, save_arrays
from tacit.populations.places import crew_on

_SECONDS = 30.0
#: So many losses without a round in between are more than bad luck.
_PATIENCE = 5


class Keeping:
    """Where a run in pieces is kept, and how often.

    Parameters
    ----------
    folder : path, optional
        On storage that every machine reaches; without one a run that loses a piece begins again.
    every : int, optional
        Rounds between two times; by default half a minute's worth.
    policy, environment, run
        What the run is of: files of another run are not gone on with.
    """

    def __init__(
        self,
        folder: str | Path | None,
        every: int | None,
        policy: AnyPolicy,
        environment: AnyEnvironment,
        run: Any,
    ) -> None:
        self._every = every
        self._kept_at = time.monotonic()
        self._rounds = 0
        self._folder = None
        if folder is not None:
            written: Any = environment
            fields = [getattr(environment, each.name) for each in dataclasses.fields(written)]
            about = hashlib.sha256(pickle.dumps((repr(policy), environment.name, fields, run)))
            about.update(code_stamp().encode())
            self._folder = Path(folder).absolute() / about.hexdigest()[:16]

    @property
    def latest(self) -> int | None:
        """The latest round before which everything is kept."""
        if self._folder is None:
            return None
        return max((int(each.stem) for each in self._folder.glob("[0-9]*.npz")), default=None)

    def due(self, t: int) -> bool:
        """Return whether it is time to keep what there is before round t."""
        if self._folder is None or t == self._rounds:
            return False
        if self._every is not None:
            return t % self._every == 0
        return time.monotonic() - self._kept_at > _SECONDS

    def middle(self, t: int) -> Path:
        """Return the file of the middle before round t; it is there if all others are."""
        assert self._folder is not None
        return self._folder / f"{t}.npz"

    def pieces(self, t: int, count: int) -> list[str]:
        """Return the files of the pieces before round t."""
        assert self._folder is not None
        return [str(self._folder / f"piece-{i}-{t}.npz") for i in range(count)]

    def kept(self, t: int) -> None:
        """Remove what is older than round t."""
        assert self._folder is not None
        self._kept_at, self._rounds = time.monotonic(), t
        for file in self._folder.glob("*.npz"):
            if int(file.stem.split("-")[-1]) < t:
                file.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove everything: the run is over."""
        if self._folder is not None and self._folder.is_dir():
            for file in self._folder.iterdir():
                file.unlink(missing_ok=True)
            self._folder.rmdir()


def play_in_pieces(
    population: Callable[[], Population],
    engine: Engine,
    keeping: Keeping,
    progress: Callable[[int], None] | None = None,
) -> tuple[Any, int]:
    """Play one repetition and return its trace and the draws of noise.

    Parameters
    ----------
    population : callable
        Returns the run at its beginning.
    engine : Engine
        Where the pieces live.
    keeping : Keeping
    progress : callable, optional
        Called with the number of rounds just played.
    """
    tell = progress or (lambda _rounds: None)
    middle = population()
    makers = [middle.maker(i) for i in range(middle.bounds.size - 1)]
    furthest, losses, hurt = 0, 0, False
    with closing(crew_on(engine, makers)) as crew:
        del makers
        while True:
            try:
                if hurt:
                    crew.mend()
                for t in _Run(middle, crew, keeping).rounds():
                    if t > furthest:
                        tell(t - furthest)
                        furthest, losses = t, 0
                outcome = middle.ended(*zip(*crew.ask("recorded"), strict=True))
                break
            except LostError as error:
                losses += 1
                if losses > _PATIENCE:
                    raise ChildProcessError(
                        f"a piece was lost {losses} times in a row ({error}), perhaps for want of "
                        "memory; more pieces or more machines need less on each"
                    ) from None
                middle, hurt = population(), True
    keeping.remove()
    return outcome


class _Run:
    """The steps from what was kept last to the end."""

    def __init__(self, middle: Population, crew: Any, keeping: Keeping) -> None:
        self._middle, self._crew, self._keeping = middle, crew, keeping
        self._count = middle.bounds.size - 1

    def rounds(self) -> Any:
        """Play, and yield the number of rounds that are finished."""
        middle, keeping, kept = self._middle, self._keeping, self._keeping.latest
        news = None
        for t in range(middle.first, 0):
            news = self._step(t, news)
        if kept is not None:
            middle.recall(load_arrays(keeping.middle(kept)))
            news = self._step(kept, news, load=keeping.pieces(kept, self._count))
            yield kept
        for t in range(0 if kept is None else kept + 1, middle.horizon + 1):
            news = self._step(t, news)
            yield t

    def _step(self, t: int, news: Any, load: list[str] | None = None) -> Any:
        middle, keeping = self._middle, self._keeping
        save = None
        if load is None and 0 < t < middle.horizon and keeping.due(t):
            save = keeping.pieces(t, self._count)
        finished, begun = self._crew.step(t, news, save=save, load=load)
        if t > middle.first and load is None:
            middle.finished(t - 1, finished, self._crew.fold)
        if save is not None:
            save_arrays(keeping.middle(t), middle.memory())
            keeping.kept(t)
        return middle.begun(t, begun, self._crew.fold) if t < middle.horizon else None
