"""What an engine is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

Finished = Callable[[int, Any], None]


class Engine(ABC):
    """Where jobs run.

    An engine keeps a bounded number of jobs under way, hands every outcome over as soon as there is
    one, and stops within two seconds when it is interrupted or a job fails.
    """

    @abstractmethod
    def run(
        self,
        function: Callable[..., Any],
        jobs: Sequence[tuple[Any, ...]],
        finished: Finished,
    ) -> None:
        """Call ``function(*job)`` for every job, and ``finished(i, outcome)`` in any order.

        Parameters
        ----------
        function : callable
            Of a module that others can import; without memory of earlier calls.
        jobs : sequence of tuples
            The arguments of each call.
        finished : callable
            Is called in this thread.

        Raises
        ------
        Exception
            The first that a job raises; jobs under way are given up.
        """
