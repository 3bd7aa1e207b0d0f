"""Recorded rewards: reading them from files and refusing what is not a reward."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_rewards", "read_rewards"]


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
