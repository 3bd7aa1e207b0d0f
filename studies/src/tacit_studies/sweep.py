"""The engine of the studies: a grid of cases becomes jobs, and their outcomes rows, figures and a verdict.

A study is data: one sweep or more, each a grid of axes and what a cell of it runs, the words of the paper,
and a function that says from the outcomes what holds. `study` makes a `Reproduction` of them.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tacit_studies.estimates import Summary, summarise
from tacit_studies.reproduction import Figure, Findings, Job, Reproduction, Row, Series, paper_of
from tacit_studies.tools import final_values
from tacit_studies.verdicts import OWN, Verdict, as_expected, verdict_of
from tacit_studies.words import find_words

T = TypeVar("T")


@dataclass(frozen=True)
class Sized(Generic[T]):
    """A value of the full size and its value at quick size."""

    full: T
    quick: T

    def at(self, quick: bool) -> T:
        """Return the value at one of the two sizes."""
        return self.quick if quick else self.full


Axis = Mapping[Any, Any] | Sequence[Any]
Judge = Callable[["Outcomes"], Findings]


class Outcomes(dict[str, Any]):
    """What the jobs of a study returned, by their keys, and the words of the study."""

    def __init__(
        self, outcomes: Mapping[str, Any], quick: bool, words: Mapping[str, str], own: bool
    ) -> None:
        super().__init__(outcomes)
        self.quick, self.words, self.own = quick, words, own

    def conclude(
        self,
        *,
        because: str,
        checks: Iterable[bool] = (),
        verdict: Verdict | None = None,
        rows: Sequence[Row] = (),
        figures: Sequence[Figure] = (),
        agreement: str = "",
        privacy: str = "",
    ) -> Findings:
        """Return the findings.

        Parameters
        ----------
        because : str
            One or two sentences with the numbers that decided.
        checks : iterable of bool
            What must hold. All of it: reproduced; some: partly. Of our own question, the verdict says
            whether what we expected was seen.
        verdict : str, optional
            In place of checks.
        rows, figures
            What the report shows.
        agreement, privacy : str, optional
            In place of the words of the study.
        """
        found = verdict_of(checks) if verdict is None else verdict
        return Findings(
            verdict=OWN if self.own else found,
            because=as_expected(found) + because if self.own else because,
            rows=list(rows),
            figures=list(figures),
            agreement=agreement or self.words.get("agreement", ""),
            privacy=privacy or self.words.get("privacy", ""),
        )

    def summary(self, key: str, part: str = "") -> Summary:
        """Return mean, interval and error of repetitions; `part` names them among other outcomes."""
        return summarise(self[key][part] if part else self[key])

    def mean(self, key: str, part: str = "") -> float:
        """Return the mean of repetitions."""
        return self.summary(key, part).mean

    def text(self, key: str, part: str = "") -> str:
        """Return the mean of repetitions and its error."""
        return self.summary(key, part).text()

    def line(
        self, label: str, xs: Sequence[float], pattern: str, part: str = "", *, dashed: bool = False
    ) -> Series:
        """Return means and intervals over `xs`; each value fills the braces of `pattern` to give a key."""
        found = [self.summary(pattern.format(x), part) for x in xs]
        return Series.of(label, xs, found, dashed=dashed)


class Sweep:
    """A grid of cases, and what each of them runs.

    Parameters
    ----------
    key : str
        The name of a job, with the names of axes in braces; of an axis with names, those.
    axes : mapping of str to a mapping, a sequence or a Sized of either
        What varies. A mapping names its values.
    function : callable
        What a job calls, at module level.
    where : callable, optional
        Which cells there are, asked like `given`; by default all.
    given : anything
        Arguments of `function`: a value, a `Sized`, or a callable whose parameters are axes, called with
        their values. An axis that is a parameter of `function` need not be given.

    Examples
    --------
    >>> def add(a, b):
    ...     return a + b
    >>> sweep = Sweep("{a}/{times}", {"a": [1, 2], "times": {"once": 1}}, add, b=lambda times: 10 * times)
    >>> [(job.key, dict(job.arguments)) for job in sweep.jobs(quick=False)]
    [('1/once', {'a': 1, 'b': 10}), ('2/once', {'a': 2, 'b': 10})]
    """

    def __init__(
        self,
        key: str,
        axes: Mapping[str, Any] | None = None,
        function: Callable[..., Any] = final_values,
        *,
        where: Callable[..., bool] | None = None,
        **given: Any,
    ) -> None:
        self.key, self.axes, self.function = key, axes or {}, function
        self.where, self.given = where, given

    def jobs(self, quick: bool) -> list[Job]:
        """Return a job for each cell, the last axis fastest."""
        axes = {name: _items(_sized(axis, quick)) for name, axis in self.axes.items()}
        jobs = []
        for cell in itertools.product(*axes.values()):
            labels = {name: label for name, (label, _) in zip(axes, cell, strict=True)}
            values = {name: value for name, (_, value) in zip(axes, cell, strict=True)}
            if self.where is None or _call(self.where, values):
                jobs.append(
                    Job(self.key.format(**labels), self.function, self._arguments(values, quick))
                )
        return jobs

    def _arguments(self, values: Mapping[str, Any], quick: bool) -> dict[str, Any]:
        taken = inspect.signature(self.function).parameters
        arguments = {name: value for name, value in values.items() if name in taken}
        for name, value in self.given.items():
            found = _call(value, values) if callable(value) else value
            arguments[name] = _sized(found, quick)
        return arguments


def _items(axis: Axis) -> list[tuple[Any, Any]]:
    return list(axis.items()) if isinstance(axis, Mapping) else [(each, each) for each in axis]


def _sized(value: Any, quick: bool) -> Any:
    return value.at(quick) if isinstance(value, Sized) else value


def _call(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    taken = inspect.signature(function).parameters
    return function(**{name: value for name, value in values.items() if name in taken})


def study(
    *sweeps: Sweep,
    name: str,
    judge: Judge,
    own: bool = False,
    needs: tuple[str, ...] = (),
    words: Mapping[str, str] | None = None,
) -> Reproduction:
    """Return the study of these sweeps.

    Parameters
    ----------
    *sweeps : Sweep
    name : str
        The paper's name, then what the study is.
    judge : callable
        Turns the outcomes of all jobs into findings.
    own : bool
        Whether the question is ours and no paper answers it.
    needs : tuple of str
        Folders of data sets it cannot run without.
    words : mapping, optional
        Title, question, claim, agreement and privacy; by default those in the folder's ``words.toml``.
    """
    said = find_words(name) if words is None else words

    def jobs(quick: bool) -> list[Job]:
        return [job for sweep in sweeps for job in sweep.jobs(quick)]

    def decide(outcomes: Mapping[str, Any], quick: bool) -> Findings:
        return judge(Outcomes(outcomes, quick, said, own))

    return Reproduction(
        name=name,
        paper=paper_of(name),
        title=said["title"],
        question=said["question"],
        claim=said["claim"],
        jobs=jobs,
        judge=decide,
        needs=needs,
        own=own,
    )
