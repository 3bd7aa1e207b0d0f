"""Comparing policies: on the same tables, in one call, with a table and a picture at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tacit.core.constraints import require
from tacit.core.policy import AnyPolicy
from tacit.core.progress import Progress, is_watched, progress_bar
from tacit.core.registry import build_environment, build_policy
from tacit.core.specs import parse_spec
from tacit.simulation.result import Result
from tacit.simulation.result_tables import CellResult, Tabular
from tacit.simulation.run import require_match, simulate
from tacit.simulation.study import Cell, label_policy


@dataclass(frozen=True)
class Comparison(Tabular):
    """Policies that were played on the same tables.

    Parameters
    ----------
    results : mapping of label to Result
    """

    results: Mapping[str, Result]

    @property
    def title(self) -> str:
        """Where they were compared."""
        return f"compare in {next(iter(self.results.values())).environment.name}"

    @property
    def shown(self) -> tuple[CellResult, ...]:
        """A cell for each policy."""
        return tuple(result.as_cell(label) for label, result in self.results.items())

    def __getitem__(self, label: str) -> Result:
        return self.results[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


def compare(
    policies: Iterable[Any] | Mapping[str, Any],
    environment: Any = None,
    *,
    horizon: int = 10_000,
    repetitions: int = 20,
    seed: int = 0,
    checkpoints: int = 100,
    threads: int | None = None,
    progress: bool | Progress | None = None,
) -> Comparison:
    """Play policies in one environment, all on the same tables.

    ``tacit compare`` on the command line does the same in processes, and keeps files.

    Parameters
    ----------
    policies : sequence, or mapping of label to policy
        Each is a policy, a class of policies (the environment fills its parameters), a name
        as on the command line such as ``"klucb-cf:epsilon=1"``, or a plain Python class with ``select`` and
        ``update`` (see :class:`tacit.arms.PythonPolicy`).
    environment : Environment, name, or function, optional
        By default the first policy's own example. A plain function of one's own is made an environment
        by :class:`tacit.arms.RewardFunction`.
    horizon, repetitions, seed, checkpoints, threads
        As for :func:`tacit.simulate`.
    progress : bool or callable, optional
        Whether to show a bar; by default in a notebook and on a terminal. Or what to call with
        rounds played and rounds in all.

    Returns
    -------
    Comparison
        With ``frame()``, ``table()``, ``plot()`` and ``summary()``.

    Examples
    --------
    >>> import tacit
    >>> found = tacit.compare(
    ...     ["uniform", "klucb-cf:epsilon=1"], "bernoulli:means=[0.3,0.7]", horizon=2000, repetitions=8
    ... )
    >>> print(found.table())
    | policy | regret | 95% interval | privacy |
    | --- | ---: | --- | --- |
    | uniform | 402 | 394.4 to 409.6 | no record is used |
    | klucb-cf epsilon=1 | 44.8 | 33.4 to 56.2 | epsilon 1 a reward, local |
    <BLANKLINE>
    """
    cells = _cells(policies, environment, horizon)
    name = cells[0].environment.name
    with _count_rounds(progress, name, horizon * repetitions * len(cells)) as count:
        results = {
            cell.label: simulate(
                cell.policy,
                cell.environment,
                horizon=horizon,
                repetitions=repetitions,
                seed=seed,
                checkpoints=min(checkpoints, horizon),
                threads=threads,
                progress=count,
            )
            for cell in cells
        }
    return Comparison(results)


def _cells(policies: Any, environment: Any, horizon: int) -> list[Cell]:
    if isinstance(policies, str):
        policies = [policies]
    is_labelled = isinstance(policies, Mapping)
    given = list(policies.items()) if is_labelled else [("", each) for each in policies]
    require("compare", "policies", "at least one", len(given) > 0, given)
    place = build_environment(environment, given[0][1])
    cells: dict[str, Cell] = {}
    for written, each in given:
        policy = build_policy(each, place.public_parameters(horizon))
        require_match(policy, place, horizon)
        label = written or _label(each, policy)
        while label in cells:
            label = repr(policy) if repr(policy) not in cells else f"{label} (again)"
        cells[label] = Cell(label, policy, place, horizon, {})
    return list(cells.values())


def _label(given: Any, policy: AnyPolicy) -> str:
    if isinstance(given, str):
        return label_policy(policy.name, parse_spec(given))
    epsilon = getattr(policy, "epsilon", None)
    return label_policy(policy.name, {} if epsilon is None else {"epsilon": f"{epsilon:g}"})


@contextmanager
def _count_rounds(
    progress: bool | Progress | None, name: str, total: int
) -> Iterator[Callable[[int], None] | None]:
    """Give what threads call with the rounds that they played; None where nobody watches."""
    if not callable(progress):
        if not (is_watched() if progress is None else progress):
            yield None
            return
        with progress_bar(name) as bar, _count_rounds(bar, name, total) as count:
            yield count
        return
    tell, played, lock = progress, 0, threading.Lock()

    def count_played(rounds: int) -> None:
        nonlocal played
        with lock:
            played += rounds
            tell(played, total)

    yield count_played
