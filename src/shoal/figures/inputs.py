"""What figures are drawn of: results as experiments return them, frames and arrays, checked."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import altair as alt
import numpy as np
import polars as pl

from shoal.errors import InvalidInputError


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
    name: str, value: Any, columns: Sequence[str], example: str, *, least_rows: int = 1
) -> None:
    """Refuse what is no frame of polars with these columns, and so many rows."""
    if not isinstance(value, pl.DataFrame):
        raise InvalidInputError(
            f"{name} must be a polars.DataFrame, such as {example}; got {_kind(value)}."
        )
    if not set(columns) <= set(value.columns) or value.height < least_rows:
        raise InvalidInputError(
            f"{name} must have rows with the columns {', '.join(columns)}; "
            f"got {value.height} rows of {value.columns}."
        )


def check_array(
    name: str, value: Any, shape: tuple[str | int, ...], *, whole: bool = False
) -> np.ndarray[Any, np.dtype[Any]]:
    """Return numbers as an array of this shape, in which a word stands for any length above 0."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.empty((), object)
    fits = array.ndim == len(shape) and array.size > 0 and array.dtype.kind in "iuf"[: 3 - whole]
    for length, expected in zip(array.shape, shape, strict=False):
        fits &= isinstance(expected, str) or length == expected
    if fits:
        return array
    words = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    actual = f"shape {array.shape} of {array.dtype}" if array.ndim else _kind(value)
    raise InvalidInputError(
        f"{name} must be {'whole ' if whole else ''}numbers of shape ({words}); got {actual}."
    )


def check_figures(name: str, figures: Sequence[Any]) -> None:
    """Refuse what are no figures, or none at all."""
    wrong = [_kind(figure) for figure in figures if not isinstance(figure, alt.TopLevelMixin)]
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


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}"
