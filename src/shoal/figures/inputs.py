"""What figures are drawn of: results as experiments return them, frames and arrays, checked."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import altair as alt
import numpy as np
import polars as pl

from shoal.errors import InvalidInputError, type_of
from shoal.frames import read_frame


@runtime_checkable
class Compared(Protocol):
    """What a ``Comparison`` has to be drawn."""

    @property
    def records(self) -> pl.DataFrame:
        """The single runs."""
        ...

    def curves(self) -> pl.DataFrame:
        """Return the mean over runs and its interval."""
        ...


@runtime_checkable
class Priced(Protocol):
    """What a ``Price`` has to be drawn."""

    def to_dict(self) -> Mapping[str, Any]:
        """Return everything that the price says."""
        ...


def check_frame(
    name: str,
    value: Any,
    example: str,
    *,
    texts: Sequence[str],
    numbers: Sequence[str],
    least_rows: int = 1,
) -> pl.DataFrame:
    """Return a dataframe of any library as one of polars, with these columns and so many rows."""
    frame = read_frame(value)
    if frame is None:
        raise InvalidInputError(
            f"{name} must be a dataframe, such as {example}; got {type_of(value)}."
        )
    if not {*texts, *numbers} <= set(frame.columns) or frame.height < least_rows:
        raise InvalidInputError(
            f"{name} must have rows with the columns {', '.join([*texts, *numbers])}; "
            f"got {frame.height} rows of {frame.columns}."
        )
    for column in numbers:
        kind = frame.schema[column]
        if not kind.is_numeric() and kind != pl.Null:  # no interval of a single run
            raise InvalidInputError(f"column {column!r} of {name} must hold numbers; got {kind}.")
    return frame.with_columns(pl.col(texts).cast(pl.String))


def check_one_class(name: str, frame: pl.DataFrame) -> None:
    """Refuse several classes of instances in one figure, whose lines would be joined."""
    if "instance" not in frame.columns:
        return
    classes = frame["instance"].unique(maintain_order=True)
    if len(classes) > 1:
        raise InvalidInputError(
            f"{name} must be of one class of instances; got {', '.join(map(str, classes))}. "
            "regret_figures draws a figure for each."
        )


def check_array(
    name: str,
    value: Any,
    shape: tuple[str | int, ...],
    *,
    whole: bool = False,
    minimum: int | None = None,
) -> np.ndarray[Any, np.dtype[Any]]:
    """Return numbers as an array of this shape, in which a word stands for any length above 0."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.empty((), object)
    fits = array.ndim == len(shape) and array.size > 0 and array.dtype.kind in "iuf"[: 3 - whole]
    for length, expected in zip(array.shape, shape, strict=False):
        fits &= isinstance(expected, str) or length == expected
    if not fits:
        words = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
        actual = f"shape {array.shape} of {array.dtype}" if array.ndim else type_of(value)
        raise InvalidInputError(
            f"{name} must be {'whole ' if whole else ''}numbers of shape ({words}); got {actual}."
        )
    if not np.isfinite(array).any():
        raise InvalidInputError(f"{name} must have a finite number; got {array.flat[0]} alone.")
    if minimum is not None and array.min() < minimum:
        raise InvalidInputError(f"{name} must be at least {minimum}; got {array.min()}.")
    return array


def check_size(name: str, value: Any) -> int:
    """Return a number of users, or refuse what is none."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1:
        return int(value)
    raise InvalidInputError(f"{name} must be a whole number of at least 1; got {value!r}.")


def check_figures(name: str, figures: Sequence[Any]) -> None:
    """Refuse what are no figures, or none at all."""
    wrong = [type_of(figure) for figure in figures if not isinstance(figure, alt.TopLevelMixin)]
    if wrong or not len(figures):
        raise InvalidInputError(
            f"{name} must be of Altair, as the functions of shoal.figures return; "
            f"got {wrong[0] if wrong else 'none'}."
        )


def file_names(path: str | Path, suffixes: Sequence[str]) -> list[Path]:
    """Return a path with each suffix, or refuse one that no file can have."""
    try:
        names = [Path(path).with_suffix(suffix) for suffix in suffixes]
    except (TypeError, ValueError):
        raise InvalidInputError(f"path must be that of a file; got {path!r}.") from None
    if not names[0].parent.is_dir():
        raise InvalidInputError(f"path must lie in a folder that exists; got {str(path)!r}.")
    return names
