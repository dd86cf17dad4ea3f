"""Means from a file: CSV with or without a header, Parquet or NumPy's .npy."""

import csv
from array import array
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.arrays import FloatArray
from shoal.errors import InvalidInputError
from shoal.model.numbers import as_path


def load_means(path: str | Path) -> FloatArray:
    """Read a matrix of means, a row per user and a column per arm.

    A CSV's first line is a header where none of its cells is a number. Means must be finite;
    whether they suit the rewards is for the environment to check.
    """
    path = as_path("path", path)
    readers = {".csv": _read_csv, ".parquet": _read_parquet, ".npy": _read_npy}
    if path.suffix.lower() not in readers:
        raise InvalidInputError(
            f"a means file must end in .csv, .parquet or .npy; got {str(path)!r}."
        )
    try:
        means = readers[path.suffix.lower()](path)
    except InvalidInputError:
        raise
    except (OSError, EOFError, ValueError, csv.Error, pl.exceptions.PolarsError) as error:
        raise unreadable(path, error) from error
    if means.ndim != 2 or not means.size:
        raise InvalidInputError(
            f"{path} must hold a matrix with a row per user and a column per arm; "
            f"got shape {means.shape}."
        )
    if not np.isfinite(means).all():
        row, column = np.argwhere(~np.isfinite(means))[0]
        raise InvalidInputError(
            f"the mean in row {row + 1}, column {column + 1} of {path} must be finite; "
            f"got {means[row, column]}."
        )
    return means


def unreadable(path: Path, error: Exception, *, hint: str = "") -> InvalidInputError:
    """Return the error that a file can't be read: the first sentence of the reason, and a hint."""
    if isinstance(error, FileNotFoundError):
        return InvalidInputError(f"{path} must be a file to read; it does not exist.")
    reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
    return InvalidInputError(f"{path} must be a readable {path.suffix} file; got: {reason}.{hint}")


def _read_csv(path: Path) -> FloatArray:
    cells = array("d")
    width, n_rows, first = 0, 0, [""]
    with path.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.reader(lines)
        for row in reader:
            if not row:
                continue
            if width == 0:
                width = len(row)
                first = row
                if _has_names(row):
                    continue
            if len(row) != width:
                raise InvalidInputError(
                    f"line {reader.line_num} of {path} must have {width} cells, as the first; "
                    f"got {len(row)}."
                )
            try:
                cells.extend(map(float, row))
            except ValueError:
                column = next(c for c, cell in enumerate(row) if not _is_number(cell))
                raise InvalidInputError(
                    f"the cell in line {reader.line_num}, column {column + 1} of {path} must be "
                    f"a number; got {row[column]!r}."
                ) from None
            n_rows += 1
    means = np.array(cells).reshape(n_rows, width)
    if width:
        _check_names(path, first, means)
    return means


def _check_names(path: Path, first: list[str], means: FloatArray) -> None:
    """Refuse what pandas writes unless told otherwise: 0, 1, 2, ... as names, and an index.

    Where all means are 0 or 1, "0,1" may be those of a user.
    """
    numbered = first == [str(place) for place in range(len(first))] != ["0"]
    if numbered and not np.isin(means, (0, 1)).all():
        got = "the numbers of the columns"
    elif "" in first and _has_names(first):
        got = "an empty name, as of an index"
    else:
        return
    raise InvalidInputError(
        f"the first line of {path} must hold the means of a user, or names of arms; got {got}. "
        "In pandas, write it by to_csv(path, header=False, index=False)."
    )


def _has_names(first: list[str]) -> bool:
    """Whether a line has names: no numbers, or those of columns after an index's empty one."""
    numbered = first == ["", *map(str, range(len(first) - 1))]
    return numbered or not any(map(_is_number, first))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_parquet(path: Path) -> FloatArray:
    frame = pl.read_parquet(path, glob=False)
    for name, kind in frame.schema.items():
        if not kind.is_numeric():
            raise InvalidInputError(f"column {name!r} of {path} must hold numbers; got {kind}.")
    # Null becomes NaN, which load_means refuses by its place.
    return frame.select(pl.all().cast(pl.Float64)).to_numpy(order="c")


def _read_npy(path: Path) -> FloatArray:
    matrix: NDArray[np.generic] = np.load(path, allow_pickle=False)
    if not isinstance(matrix, np.ndarray):
        raise InvalidInputError(f"{path} must hold one array; got several, as in an .npz file.")
    if matrix.dtype.kind not in "biuf":
        raise InvalidInputError(f"{path} must hold numbers; got dtype {matrix.dtype}.")
    return matrix.astype(np.float64, order="C")
