"""Recorded environments: rewards from an array or a file, and the refusal of what is not a reward."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.arms.environments.base import ArmsEnvironment, Schedule, make_table
from tacit.arms.table import RECORDED, Table
from tacit.core.constraints import require


@dataclass(frozen=True, kw_only=True)
class Recorded(ArmsEnvironment):
    """Rewards read from an array or a file: every repetition replays the same table.

    Parameters
    ----------
    data : array of shape (rounds, arms), optional
    file : path, optional
        A ``.csv`` file with one column an arm (a first line without any number is a header), a
        ``.parquet`` file or a ``.npy`` file. Give `data` or `file`.

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
        return make_table(
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
    readers = {".npy": _read_npy, ".parquet": _read_parquet, ".csv": _read_csv}
    if file.suffix not in readers:
        raise ValueError(f"Recorded: expected a .csv, .parquet or .npy file, got {file.name!r}")
    return check_rewards(readers[file.suffix](file), file.name)


def _read_npy(file: Path) -> NDArray[np.float64]:
    try:
        array: NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{file.name}: not a NumPy file ({error})") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{file.name}: expected numbers, got {array.dtype}")
    return array


def _read_csv(file: Path) -> NDArray[np.float64]:
    """Read numbers; a first line none of whose cells is a number is a header."""
    try:
        with file.open(encoding="utf-8-sig") as lines:
            first = lines.readline().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(f"{file.name}: not a text file in UTF-8") from None
    cells = first.split(",")
    numbers = [_is_number(cell) for cell in cells]
    header = first.strip() != "" and not any(numbers)
    if not header and not all(numbers):
        cell = cells[numbers.index(False)].strip()
        raise ValueError(f"{file.name}, line 1: expected numbers or a header, got {cell!r}")
    try:
        with file.open(encoding="utf-8-sig") as lines:
            if header:
                lines.readline()
            return np.loadtxt(lines, delimiter=",", ndmin=2, comments=None)
    except UnicodeDecodeError:
        raise ValueError(f"{file.name}: not a text file in UTF-8") from None
    except ValueError as error:
        raise ValueError(_fault(file, header) or f"{file.name}: {error}") from None


def _fault(file: Path, header: bool) -> str:
    """Return the first line of a CSV file that is not like the others."""
    width = None
    with file.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            cells = line.rstrip("\r\n").split(",")
            if (header and number == 1) or not line.strip():
                continue
            width = width or len(cells)
            if len(cells) != width:
                return f"{file.name}, line {number}: expected {width} cells, got {len(cells)}"
            for cell in cells:
                if not _is_number(cell):
                    what = cell.strip() or "nothing"
                    return f"{file.name}, line {number}: expected a number, got {what!r}"
    return ""


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_parquet(file: Path) -> NDArray[np.float64]:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise ValueError("Recorded: Parquet needs pyarrow; pip install 'tacit[cli]'") from None
    try:
        source = pq.ParquetFile(file)
    except (ValueError, OSError) as error:
        raise ValueError(f"{file.name}: not a Parquet file ({error})") from None
    columns = len(source.schema_arrow)
    rewards = np.empty((source.metadata.num_rows, columns))
    first = 0
    for batch in source.iter_batches():
        for arm in range(columns):
            try:
                column = batch.column(arm).cast("float64")
            except (ValueError, NotImplementedError):
                name = source.schema_arrow.names[arm]
                raise ValueError(f"{file.name}: expected numbers in column {name!r}") from None
            rewards[first : first + len(batch), arm] = column.to_numpy(zero_copy_only=False)
        first += len(batch)
    return rewards
