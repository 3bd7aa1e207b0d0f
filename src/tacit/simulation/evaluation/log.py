"""Logged decisions: which arm was shown, with what probability, and what it earned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require

COLUMNS = {"arm": "arm", "reward": "reward", "propensity": "propensity"}
"""What a log must say of each decision, and what the columns are called unless one says otherwise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Log:
    """n decisions in the order in which they were made.

    Parameters
    ----------
    arms : array of int, shape (n,)
        What was shown, from 0.
    rewards : array of float, shape (n,)
        What it earned, in [0, 1].
    propensities : array of float, shape (n,)
        The probability with which it was shown, in (0, 1].
    n_arms : int, optional
        How many arms there were; by default one more than the largest number in the log.
    source : str
        Where it comes from, for messages.

    Examples
    --------
    >>> log = Log(arms=[0, 1, 1], rewards=[0.0, 1.0, 0.0], propensities=[0.5, 0.5, 0.5])
    >>> len(log), log.n_arms, log.uniform
    (3, 2, True)
    """

    arms: NDArray[Any]
    rewards: NDArray[Any]
    propensities: NDArray[Any]
    n_arms: int = 0
    source: str = "log"

    def __post_init__(self) -> None:
        arms = np.asarray(self.arms)
        whole = (
            arms.size > 0 and np.issubdtype(arms.dtype, np.number) and bool((arms % 1 == 0).all())
        )
        require(self.source, "arms", "whole numbers, at least one", whole, _first(arms))
        arms = arms.astype(np.int64)
        n_arms = self.n_arms or int(arms.max()) + 1
        _each(self.source, "arm", f"in 0..{n_arms - 1}", arms, (arms >= 0) & (arms < n_arms))
        rewards = np.asarray(self.rewards, np.float64)
        _each(self.source, "reward", "in [0, 1]", rewards, (rewards >= 0) & (rewards <= 1))
        chances = np.asarray(self.propensities, np.float64)
        _each(self.source, "propensity", "in (0, 1]", chances, (chances > 0) & (chances <= 1))
        sizes = (len(arms), len(rewards), len(chances))
        require(self.source, "columns", "equally long", len(set(sizes)) == 1, sizes)
        for name, value in (("arms", arms), ("rewards", rewards), ("propensities", chances)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "n_arms", n_arms)

    def __len__(self) -> int:
        return len(self.arms)

    @property
    def uniform(self) -> bool:
        """Whether every arm had the same chance in every decision."""
        return bool(np.allclose(self.propensities, 1 / self.n_arms, rtol=1e-6))

    def part(self, first: int, last: int) -> Log:
        """Return the decisions from `first` up to `last`."""
        return Log(
            arms=self.arms[first:last],
            rewards=self.rewards[first:last],
            propensities=self.propensities[first:last],
            n_arms=self.n_arms,
            source=self.source,
        )


def read_log(file: str | Path, *, columns: Mapping[str, str] | None = None, n_arms: int = 0) -> Log:
    """Read a log from a CSV or Parquet file whose first line names the columns.

    Parameters
    ----------
    file : path
        ``.csv``, ``.csv.gz`` or ``.parquet``.
    columns : mapping, optional
        What the columns ``arm``, ``reward`` and ``propensity`` are called in the file. Without a column of
        propensities name it ``""``: every arm is then taken to have had the same chance.
    n_arms : int, optional
        If some arms were never shown.
    """
    path = Path(file)
    names = {**COLUMNS, **(columns or {})}
    unknown = sorted(set(names) - set(COLUMNS))
    require("read_log", "columns", f"among {', '.join(COLUMNS)}", not unknown, unknown)
    if not path.is_file():
        what = "expected a file, got a folder" if path.is_dir() else "no such file"
        raise ValueError(f"{path}: {what}")
    wanted = [name for name in names.values() if name]
    read = _parquet if path.suffix == ".parquet" else _csv
    found = dict(zip(wanted, read(path, wanted), strict=True))
    arms = found[names["arm"]]
    count = n_arms or (int(np.nanmax(arms)) + 1 if len(arms) else 0)
    chances = found[names["propensity"]] if names["propensity"] else np.full(len(arms), 1 / count)
    return Log(
        arms=arms,
        rewards=found[names["reward"]],
        propensities=chances,
        n_arms=count,
        source=path.name,
    )


def _csv(path: Path, wanted: list[str]) -> list[NDArray[np.float64]]:
    try:
        from pyarrow import ArrowInvalid, csv
    except ImportError:
        raise ValueError("reading a log needs pyarrow; pip install 'tacit[cli]'") from None
    try:
        table = csv.read_csv(path, convert_options=csv.ConvertOptions(include_columns=wanted))
    except (ArrowInvalid, KeyError, OSError) as error:
        raise ValueError(f"{path.name}: {_reason(error, wanted)}") from None
    return _columns(path, table, wanted)


def _parquet(path: Path, wanted: list[str]) -> list[NDArray[np.float64]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ValueError("reading a log needs pyarrow; pip install 'tacit[cli]'") from None
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path.name}: {_reason(error, wanted)}") from None
    missing = [name for name in wanted if name not in table.column_names]
    if missing:
        raise ValueError(
            f"{path.name}: expected the columns {', '.join(wanted)}, got no {missing[0]}"
        )
    return _columns(path, table, wanted)


def _reason(error: Exception, wanted: list[str]) -> str:
    text = " ".join(str(error).split())
    if "include_columns" in text or isinstance(error, KeyError):
        return f"expected the columns {', '.join(wanted)} ({text})"
    return text


def _columns(path: Path, table: Any, wanted: list[str]) -> list[NDArray[np.float64]]:
    found = []
    for name in wanted:
        column = table.column(name)
        if column.null_count:
            raise ValueError(f"{path.name}: {name} is missing in {column.null_count} rows")
        try:
            found.append(column.cast("float64").to_numpy())
        except Exception as error:  # Arrow has a class of its own for each reason
            raise ValueError(f"{path.name}: {name}: {' '.join(str(error).split())}") from None
    return found


def _each(
    owner: str, name: str, params: str, values: NDArray[Any], good: NDArray[np.bool_]
) -> None:
    """Name the first row whose value breaks the rule."""
    if not good.all():
        row = int(np.argmin(good))
        require(owner, f"{name} of row {row}", params, False, values[row].item())


def _first(values: NDArray[Any]) -> Any:
    return values.ravel()[0] if values.size else "none"
