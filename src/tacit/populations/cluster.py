"""Pieces of a population as actors of a Ray cluster, spread over its machines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tacit.core.errors import first_line
from tacit.core.processes import block_sigint
from tacit.engines.cluster import Stay, load_ray, module_paths
from tacit.populations.actors import Crew, LostError, made
from tacit.populations.partitions import Maker, Piece

#: Seconds that a cluster may take to bring a lost actor back.
_COMING_BACK = 120.0


class ActorCrew(Crew):
    """Pieces as actors; what they send each other goes from actor to actor."""

    def __init__(self, ray: Any, makers: Sequence[Maker], stay: Stay) -> None:
        self._ray, self._stay = ray, stay
        actor = ray.remote(_Actor).options(
            num_cpus=0,
            max_restarts=-1,
            scheduling_strategy="SPREAD",
            runtime_env={"env_vars": {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": module_paths()}},
        )
        self._actors = [actor.remote(maker) for maker in makers]
        self._mail: list[dict[int, Any]] = [{} for _ in makers]
        try:
            self.mend()
        except BaseException:
            self._end()
            raise

    def step(
        self, t: int, news: Any, *, save: Sequence[str] | None, load: Sequence[str] | None
    ) -> tuple[list[Any], list[Any]]:
        """Let every piece do step t."""
        shared = self._ray.put(news)
        answers = self._get(
            [
                actor.step.remote(t, shared, *_files(i, save, load), self._mail[i])
                for i, actor in enumerate(self._actors)
            ]
        )
        self._mail = [
            {i: mail[j] for i, (_, _, mail) in enumerate(answers) if j in mail}
            for j in range(len(answers))
        ]
        return [each[0] for each in answers], [each[1] for each in answers]

    def fold(self, method: str, value: Any) -> Any:
        """Call a method of every piece on what the one before it returned."""
        for actor in self._actors:
            value = actor.call.remote(method, value)
        return self._get(value)

    def ask(self, method: str) -> list[Any]:
        """Call a method of every piece."""
        asked: list[Any] = self._get([actor.call.remote(method) for actor in self._actors])
        return asked

    def mend(self) -> None:
        """Wait until Ray has brought the lost actors back, and let all pieces begin again."""
        self._mail = [{} for _ in self._actors]
        deadline = time.monotonic() + _COMING_BACK
        left = list(self._actors)
        while left:
            asked = {actor: actor.reset.remote() for actor in left}
            left = []
            for actor, answer in asked.items():
                try:
                    self._get(answer)
                except LostError:
                    if time.monotonic() > deadline:
                        raise
                    left.append(actor)
            if left:
                time.sleep(0.2)

    def close(self) -> None:
        """End the actors."""
        self._mail = []
        with block_sigint():
            self._end()
            self._stay.end()

    def _end(self) -> None:
        for actor in self._actors:
            self._ray.kill(actor)

    def _get(self, answers: Any) -> Any:
        exceptions = self._ray.exceptions
        try:
            return self._ray.get(answers)
        except exceptions.RayError as error:
            cause = error.cause if isinstance(error, exceptions.RayTaskError) else error
            for each in answers if isinstance(answers, list) else ():
                with suppress(Exception):  # the others have no news, but Ray would say so
                    self._ray.get(each)
        if isinstance(cause, exceptions.RayError):
            raise LostError(first_line(cause))
        raise cause


class _Actor:
    """One piece, where Ray put it; made when it is first asked to be as it was made."""

    def __init__(self, maker: Maker) -> None:
        self._maker = maker
        self._piece: Piece | None = None

    def reset(self) -> None:
        """Be as it was made."""
        if self._piece is None:
            self._piece = made(self._maker)
        else:
            self._piece.reset()

    def step(
        self, t: int, news: Any, save: str | None, load: str | None, mail: dict[int, Any]
    ) -> tuple[Any, Any, dict[int, Any]]:
        """Do step t; return what is for the middle, and where what is for others can be had."""
        ray = load_ray()
        came = dict(zip(mail, ray.get(list(mail.values())), strict=True))
        piece = self._piece
        assert piece is not None
        letters = [came.get(i) for i in range(piece.n_pieces)]
        answer = piece.step(t, news, letters, save=save, load=load)
        sent = {j: ray.put(each) for j, each in enumerate(answer.mail) if each is not None}
        return answer.finished, answer.begun, sent

    def call(self, method: str, *words: Any) -> Any:
        """Return what a method of the piece returns."""
        return getattr(self._piece, method)(*words)


def _files(i: int, *files: Sequence[str] | None) -> list[str | None]:
    return [None if each is None else each[i] for each in files]
