"""Recorded environments: rewards from an array or a file, and the refusal of what is not a reward."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.arms.environments import ArmsEnvironment, Schedule, table_of
from tacit.arms.tables import RECORDED, Table
from tacit.checks import require

__all__ = ["Recorded"]


@dataclass(frozen=True, kw_only=True)
class Recorded(ArmsEnvironment):
    """Rewards read from an array or a file: every repetition replays the same table.

    Parameters
    ----------
    data : array of shape (rounds, arms), optional
    file : path, optional
        A ``.csv`` file with one column an arm (a header line is allowed), a ``.parquet`` file or a
        ``.npy`` file. Give `data` or `file`.

    Raises
    ------
    ValueError
        If a reward is missing, not a number or outside [0, 1]; the message names row and value.

    Examples
    --------
    >>> from tacit.arms import Recorded
    >>> Recorded(data=[[0, 1], [0.5, 0.25]]).n_arms
    2
    """

    name: ClassVar[str] = "recorded"
    summary: ClassVar[str] = "rewards from an array, CSV or Parquet"
    rewards: ClassVar[str] = "recorded"
    spread: ClassVar[float] = 1.0

    data: Any = None
    file: str | Path | None = None

    def __post_init__(self) -> None:
        one = (self.data is None) != (self.file is None)
        require(self, "data or file", "given, not both", one, (self.data is not None, self.file))
        _ = self.array

    def __hash__(self) -> int:
        return hash((self.array.shape, self.array.tobytes()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recorded) and np.array_equal(self.array, other.array)

    @cached_property
    def array(self) -> NDArray[np.float64]:
        """The rewards, checked."""
        if self.file is not None:
            return read_rewards(Path(self.file))
        return check_rewards(np.array(self.data, dtype=np.float64), "Recorded")

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return int(self.array.shape[1])

    def schedule(self, horizon: int, rng: np.random.Generator) -> Schedule:
        """Return the mean record of each arm, for information."""
        return Schedule(np.zeros(1, np.int64), self.array[:horizon].mean(axis=0)[None])

    def table(self, seed: int, repetition: int, horizon: int) -> Table:
        """Return the recorded table."""
        rounds = self.array.shape[0]
        require(self, "horizon", f"<= {rounds} recorded rounds", horizon <= rounds, horizon)
        schedule = self.schedule(horizon, np.random.default_rng(0))
        return table_of(
            kind=RECORDED,
            key=np.zeros(2, np.uint64),
            schedule=schedule,
            spread=1.0,
            recorded=self.array,
            champion=int(schedule.means[0].argmax()),
        )


def check_rewards(rewards: NDArray[np.float64], source: str) -> NDArray[np.float64]:
    """Return `rewards` if all lie in [0, 1]; else name the first row and value that does not."""
    if rewards.ndim != 2 or rewards.size == 0:
        raise ValueError(f"{source}: expected rounds x arms, got shape {rewards.shape}")
    for first in range(0, len(rewards), 1 << 20):  # in pieces: a mask of all of it may not fit
        chunk = rewards[first : first + (1 << 20)]
        bad = ~((chunk >= 0.0) & (chunk <= 1.0))
        if bad.any():
            row, arm = np.argwhere(bad)[0]
            raise ValueError(
                f"{source}: expected rewards in [0, 1], "
                f"got {chunk[row, arm]} in row {first + row}, arm {arm}"
            )
    return np.ascontiguousarray(rewards)


def read_rewards(file: Path) -> NDArray[np.float64]:
    """Read rounds x arms from a CSV, Parquet or NPY file; an NPY file is mapped, not loaded."""
    if not file.is_file():
        raise ValueError(f"Recorded: expected file to exist, got {str(file)!r}")
    if file.suffix == ".npy":
        return check_rewards(np.load(file, mmap_mode="r", allow_pickle=False), file.name)
    if file.suffix == ".parquet":
        return check_rewards(_read_parquet(file), file.name)
    if file.suffix == ".csv":
        return check_rewards(_read_csv(file), file.name)
    raise ValueError(f"Recorded: expected a .csv, .parquet or .npy file, got {file.name!r}")


def _read_csv(file: Path) -> NDArray[np.float64]:
    with file.open(encoding="utf-8") as lines:
        header = not _is_row(lines.readline())
    try:
        return np.loadtxt(file, delimiter=",", skiprows=int(header), ndmin=2)
    except ValueError as error:
        raise ValueError(f"{file.name}: {error}") from None


def _is_row(line: str) -> bool:
    try:
        return bool([float(cell) for cell in line.split(",")])
    except ValueError:
        return False


def _read_parquet(file: Path) -> NDArray[np.float64]:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise ValueError("Recorded: Parquet needs pyarrow; pip install 'tacit[cli]'") from None
    source = pq.ParquetFile(file)
    columns = len(source.schema_arrow)
    rewards = np.empty((source.metadata.num_rows, columns))
    first = 0
    for batch in source.iter_batches():
        for arm in range(columns):
            column = batch.column(arm).cast("float64")
            rewards[first : first + len(batch), arm] = column.to_numpy(zero_copy_only=False)
        first += len(batch)
    return rewards
