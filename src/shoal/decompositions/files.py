"""Active sets in, assignments out, as files.

A JSON file is a list with each user's active arms, ``[[0, 2], [1], ...]``, or an object with that
list as ``active`` and perhaps ``demand`` and ``n_arms``. A CSV or Parquet file has a row for each
active pair, with the columns ``user`` and ``arm``, both numbered from 0. Assignments are written
as Parquet: a row for each, with its repeat count and the list of all users' arms.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.arrays import BoolArray, WholeArray
from shoal.decompositions.decomposition import Decomposition
from shoal.errors import InvalidInputError
from shoal.model.numbers import whole_number


def read_active(path: str | Path) -> tuple[BoolArray, int | None]:
    """Return the active arms, (n_users, n_arms), and the demand where the file names one."""
    file = Path(path)
    readers = {".json": _read_json, ".csv": _read_pairs, ".parquet": _read_pairs}
    if file.suffix not in readers:
        raise InvalidInputError(f"file must end in {', '.join(readers)}; got {str(file)!r}.")
    try:
        return readers[file.suffix](file)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInputError(f"file must be readable; got {str(file)!r}: {reason}.") from error


def write_assignments(decomposition: Decomposition, path: str | Path) -> None:
    """Write a row for each assignment: its number, its repeat count, each user's arm."""
    n_assignments, n_users = decomposition.assignments.shape
    pl.DataFrame(
        {
            "assignment": np.arange(n_assignments),
            "repeats": decomposition.repeats,
            "arms": pl.Series(decomposition.assignments, dtype=pl.Array(pl.Int32, n_users)).cast(
                pl.List(pl.Int32)
            ),
        }
    ).write_parquet(path)


def _read_json(file: Path) -> tuple[BoolArray, int | None]:
    value = json.loads(file.read_text(encoding="utf-8"))
    content: dict[str, Any] = value if isinstance(value, dict) else {"active": value}
    rows = content.get("active")
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise InvalidInputError("active must be a list with each user's list of arms.")
    users = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    arms = [
        whole_number(f"active[{i}]", arm, minimum=0) for i, row in enumerate(rows) for arm in row
    ]
    demand = content.get("demand")
    matrix = _matrix(users, np.array(arms, np.int64), len(rows), content.get("n_arms"))
    return matrix, None if demand is None else whole_number("demand", demand)


def _read_pairs(file: Path) -> tuple[BoolArray, int | None]:
    read = pl.read_csv if file.suffix == ".csv" else pl.read_parquet
    frame = read(file)
    for name in ("user", "arm"):
        if name not in frame.columns:
            raise InvalidInputError(f"file must have a column {name!r}; got {frame.columns}.")
        column = frame[name]
        if not column.dtype.is_integer() or column.null_count() or (column < 0).any():
            raise InvalidInputError(
                f"column {name!r} must hold whole numbers of at least 0; got {column.dtype}."
            )
    users, arms = frame["user"].to_numpy(), frame["arm"].to_numpy()
    return _matrix(users, arms, int(users.max(initial=-1)) + 1, None), None


def _matrix(users: WholeArray, arms: WholeArray, n_users: int, n_arms: Any) -> BoolArray:
    min_arms = int(arms.max(initial=0)) + 1
    width = min_arms if n_arms is None else whole_number("n_arms", n_arms, minimum=min_arms)
    matrix = np.zeros((n_users, width), np.bool_)
    matrix[users, arms] = True
    return matrix
