"""Partitions of a population as actors of a Ray cluster, spread over its machines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tacit.core.errors import first_line
from tacit.core.processes import block_sigint
from tacit.engines.cluster import Stay, load_ray, module_paths
from tacit.populations.actors import Actor, ActorGroup, Files, LostError, Messages, Order
from tacit.populations.partitions import Maker

#: Seconds that a cluster may take to bring a lost actor back.
_COMING_BACK = 120.0


class RayActors(ActorGroup):
    """An actor of Ray for each partition; what they send each other goes from actor to actor."""

    def __init__(self, ray: Any, makers: Sequence[Maker], stay: Stay) -> None:
        super().__init__(makers, len(makers))
        self._ray, self._stay = ray, stay
        actor = ray.remote(_RayActor).options(
            num_cpus=0,
            max_restarts=-1,
            scheduling_strategy="SPREAD",
            runtime_env={"env_vars": {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": module_paths()}},
        )
        self._actors = [actor.remote({i: make}) for i, make in enumerate(makers)]
        try:
            self.restart()
        except BaseException:
            self._end()
            raise

    def restart(self) -> None:
        """Wait until Ray has brought the lost actors back, and let all partitions begin again."""
        self._messages = [{} for _ in self._actors]
        deadline = time.monotonic() + _COMING_BACK
        left = list(self._actors)
        while left:
            asked = {actor: actor.obey.remote("reset") for actor in left}
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
        self._messages = []
        with block_sigint():
            self._end()
            self._stay.end()

    def _end(self) -> None:
        for actor in self._actors:
            self._ray.kill(actor)

    def _share(self, value: Any) -> Any:
        return self._ray.put(value)

    def _order(self, w: int, order: Order) -> Any:
        return self._get(self._actors[w].obey.remote(*order))

    def _order_all(self, orders: Sequence[Order]) -> list[Any]:
        pairs = zip(self._actors, orders, strict=True)
        answers: list[Any] = self._get([actor.obey.remote(*order) for actor, order in pairs])
        return answers

    def _get(self, answers: Any) -> Any:
        exceptions = self._ray.exceptions
        try:
            return self._ray.get(answers)
        except exceptions.RayError as error:
            cause = error.cause if isinstance(error, exceptions.RayTaskError) else error
            for each in answers if isinstance(answers, list) else ():
                with suppress(Exception):  # nobody asks for the others, and Ray would say so
                    self._ray.get(each)
        if isinstance(cause, exceptions.RayError):
            raise LostError(first_line(cause))
        raise cause


class _RayActor(Actor):
    """An actor where Ray put it; messages stay in Ray's store, and only references travel."""

    def obey(self, order: str, *arguments: Any) -> Any:
        """Carry out an order; Ray calls methods by name only."""
        return self(order, *arguments)

    def step(
        self, t: int, shared: Any, save: Files, load: Files, messages: Messages, count: int
    ) -> tuple[dict[int, tuple[Any, Any]], Messages]:
        """Fetch the messages, let the partitions do step t, and return where theirs can be had."""
        ray = load_ray()
        came = dict(zip(messages, ray.get(list(messages.values())), strict=True))
        reports, sent = super().step(t, shared, save, load, came, count)
        return reports, {way: ray.put(each) for way, each in sent.items()}
