"""Comparing policies: on the same tables, in one call, with a table and a picture at the end."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tacit.core.constraints import require
from tacit.core.policy import AnyEnvironment, AnyPolicy, Environment, Policy
from tacit.core.registry import build, build_named, environment_named, policy_named
from tacit.core.specs import parse_spec
from tacit.simulation.result import Result, cell_of
from tacit.simulation.result_tables import CellResult, Tabular
from tacit.simulation.run import require_match, simulate


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
        return tuple(cell_of(label, result) for label, result in self.results.items())

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
    progress: bool | Callable[[int, int], None] | None = None,
) -> Comparison:
    """Play policies in one environment, all on the same tables.

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
    labelled = (
        list(policies.items())
        if isinstance(policies, Mapping)
        else [(None, each) for each in ([policies] if isinstance(policies, str) else policies)]
    )
    require("compare", "policies", "at least one", len(labelled) > 0, labelled)
    place = _environment(environment, labelled[0][1])
    chosen: dict[str, AnyPolicy] = {}
    for label, each in labelled:
        policy = _policy(each, place, horizon)
        require_match(policy, place, horizon)
        name = label or _label(each, policy)
        while name in chosen:
            name = repr(policy) if repr(policy) not in chosen else f"{name} (again)"
        chosen[name] = policy
    with _progress(progress, place.name, horizon * repetitions * len(chosen)) as tell:
        results = {
            name: simulate(
                policy,
                place,
                horizon=horizon,
                repetitions=repetitions,
                seed=seed,
                checkpoints=min(checkpoints, horizon),
                threads=threads,
                progress=tell,
            )
            for name, policy in chosen.items()
        }
    return Comparison(results)


def _environment(given: Any, first: Any) -> AnyEnvironment:
    if given is None:
        if isinstance(first, str):
            first = policy_named(parse_spec(first)["name"])
        if not hasattr(first, "example_environment"):
            raise ValueError("compare: expected an environment, got none")
        given = first.example_environment
    if isinstance(given, Environment):
        return given
    if isinstance(given, str | Mapping):
        return build_named(given, environment_named)
    raise ValueError(
        f"compare: expected an environment or its name, got {given!r}; a function of your own "
        "becomes one with tacit.arms.RewardFunction(function=..., n_arms=...)"
    )


def _policy(given: Any, environment: AnyEnvironment, horizon: int) -> AnyPolicy:
    public = environment.public_parameters(horizon)
    if isinstance(given, Policy):
        return given
    if isinstance(given, str | Mapping):
        return build_named(given, policy_named, public)
    if isinstance(given, type):
        return build(policy_named(given), public, {})
    raise ValueError(f"compare: expected a policy, its class or its name, got {given!r}")


def _label(given: Any, policy: AnyPolicy) -> str:
    if isinstance(given, str):
        spec = parse_spec(given)
        spec.pop("name")
        return " ".join([policy.name, *(f"{key}={value}" for key, value in spec.items())])
    epsilon = getattr(policy, "epsilon", None)
    return policy.name if epsilon is None else f"{policy.name} epsilon={epsilon:g}"


@contextmanager
def _progress(
    progress: bool | Callable[[int, int], None] | None, name: str, total: int
) -> Iterator[Callable[[int], None] | None]:
    if progress is None:
        progress = sys.stderr.isatty() or "ipykernel" in sys.modules
    played = 0
    if callable(progress):
        tell = progress

        lock = threading.Lock()

        def count(rounds: int) -> None:
            nonlocal played
            with lock:
                played += rounds
                tell(played, total)

        yield count
        return
    if not progress:
        yield None
        return
    try:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn
    except ImportError:
        yield None
        return
    columns = ("{task.description}", BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task(name, total=total)
        yield lambda rounds: bar.advance(task, rounds)
