"""Dataframes of any library that narwhals knows: pandas, polars, PyArrow, DuckDB and others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import InvalidInputError

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl


def read_frame(value: Any) -> pl.DataFrame | None:
    """Return a frame as one of polars; None for anything else."""
    if isinstance(value, np.ndarray | np.generic | list | tuple | dict | str | bytes | int | float):
        return None
    import narwhals as nw

    frame = _wrap(value)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect(backend="polars")
    if not isinstance(frame, nw.DataFrame):
        return None
    import polars as pl

    return pl.DataFrame([_read_column(column) for column in frame.iter_columns()])


def is_frame(value: Any) -> bool:
    """Say whether a value is a frame; a single column is none.

    >>> is_frame([1, 2])
    False
    """
    if isinstance(value, np.ndarray | list | tuple | range | dict):
        return False
    import narwhals as nw

    return isinstance(_wrap(value), nw.DataFrame | nw.LazyFrame)


def _wrap(value: Any) -> Any:
    """Return a frame as one of narwhals, and anything else as it is."""
    import narwhals as nw

    try:
        return nw.from_native(value, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        names = ", ".join(line.removeprefix("- ") for line in str(error).splitlines()[1:])
        raise InvalidInputError(
            f"the columns of a dataframe must have different names; got {names}."
        ) from error


def _read_column(column: nw.Series[Any]) -> pl.Series:
    """Return a column as one of polars; text of pandas needs pyarrow there, or a list."""
    import polars as pl

    try:
        try:
            return column.to_polars()
        except ImportError:
            absent = column.is_null().to_list()
            values = zip(column.to_list(), absent, strict=True)
            return pl.Series(column.name, [None if gap else value for value, gap in values])
    except (TypeError, ValueError):  # of polars, or of pyarrow
        raise InvalidInputError(
            f"column {column.name!r} must hold values of one type; got several."
        ) from None


def as_array(name: str, value: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Return an array of what can be one; a frame's columns must all hold numbers.

    >>> as_array("means", [[0.5], [0.5, 0.5]])
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: means must be an array; got rows of different lengths.
    """
    frame = read_frame(value)
    if frame is not None:
        for column, kind in frame.schema.items():
            if not (kind.is_numeric() or str(kind) == "Boolean"):
                raise InvalidInputError(
                    f"every column of {name} must hold numbers; got {kind} in column {column!r}."
                )
        return frame.cast(dict.fromkeys(frame.columns, _float64())).to_numpy(order="c")
    if np.ma.is_masked(value):
        raise InvalidInputError(f"{name} must be complete; got an array with masked entries.")
    try:
        return np.asarray(value)
    except ValueError as error:
        raise InvalidInputError(
            f"{name} must be an array; got rows of different lengths."
        ) from error


def _float64() -> Any:
    import polars as pl

    return pl.Float64  # null becomes NaN
