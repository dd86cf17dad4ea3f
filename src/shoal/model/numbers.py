"""Checks of single values at the edge; each refuses by name, rule and value."""

import inspect
import math
from collections.abc import Callable
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import InvalidInputError, type_of

MAX_INT64 = 2**63 - 1


def whole_number(name: str, value: Any, *, minimum: int | None = 1) -> int:
    """Return ``value`` as an int, or refuse it by name.

    >>> whole_number("horizon", 2.5)
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: horizon must be a whole number of at least 1; got 2.5.
    """
    if not isinstance(value, bool):
        try:
            number = index(value)
        except TypeError:
            pass
        else:
            if number > MAX_INT64:
                raise InvalidInputError(f"{name} must be at most 2**63 - 1; got more.")
            if minimum is None or number >= minimum:
                return number
    bound = "" if minimum is None else f" of at least {minimum}"
    as_float = plain(value)
    is_whole = isinstance(as_float, float) and as_float.is_integer()
    remedy = (
        f" Write {int(as_float)}." if is_whole and (minimum is None or as_float >= minimum) else ""
    )
    raise InvalidInputError(
        f"{name} must be a whole number{bound}; got {shortened(value)}.{remedy}"
    )


def positive_number(name: str, value: Any) -> float:
    """Return ``value`` as a finite float above 0, or refuse it by name.

    >>> positive_number("gamma", "much")
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: gamma must be a positive number; got 'much'.
    """
    return _number(name, value, "a positive number", lambda number: 0 < number < math.inf)


def not_negative(name: str, value: Any) -> float:
    """Return ``value`` as a finite float of at least 0, or refuse it by name."""
    return _number(name, value, "a number of at least 0", lambda number: 0 <= number < math.inf)


def share(name: str, value: Any) -> float:
    """Return ``value`` as a float between 0 and 1, or refuse it by name."""
    return _number(name, value, "a number between 0 and 1", lambda number: 0 <= number <= 1)


def truth_value(name: str, value: Any) -> bool:
    """Return ``value`` as a bool, or refuse it by name: "no" would count as true.

    >>> truth_value("tuned", "no")
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: tuned must be true or false; got 'no'.
    """
    truth = plain(value)
    if isinstance(truth, bool):
        return truth
    raise InvalidInputError(f"{name} must be true or false; got {shortened(value)}.")


def function_or_none(name: str, value: Any, *arguments: str) -> None:
    """Refuse what is no function of these ``arguments``; None stands for none.

    >>> function_or_none("progress", lambda done: None, "finished", "done", "total")
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: progress must be a function of (finished, done, total); \
got one of (done).
    """
    if value is None:
        return
    rule = f"{name} must be a function of ({', '.join(arguments)})"
    if not callable(value):
        raise InvalidInputError(f"{rule}; got {shortened(value)}.")
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # as of some that are written in C
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise InvalidInputError(f"{rule}; got one of {signature}.") from None


def generator(name: str, value: Any) -> np.random.Generator:
    """Return ``value``, a generator, or refuse it by name: a seed becomes one by the caller.

    >>> generator("rng", 0)
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: rng must be a numpy.random.Generator, such as \
np.random.default_rng(0); got 0.
    """
    if isinstance(value, np.random.Generator):
        return value
    raise InvalidInputError(
        f"{name} must be a numpy.random.Generator, such as np.random.default_rng(0); "
        f"got {shortened(value)}."
    )


def as_path(name: str, value: Any, kind: str = "file") -> Path:
    """Return ``value`` as a path, or refuse by name what is none.

    >>> as_path("path", 3)
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: path must be that of a file; got 3.
    """
    try:
        return Path(value)
    except TypeError:
        raise InvalidInputError(
            f"{name} must be that of a {kind}; got {shortened(value)}."
        ) from None


def plain(value: Any) -> Any:
    """Return a number of NumPy as one of Python, and anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def shortened(value: Any) -> str:
    """Return a value for a message: in one line, and not too long.

    >>> shortened([0] * 100)
    '[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ... (a list)'
    """
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:58]}... ({type_of(value)})"


def is_number(value: Any) -> bool:
    """Say whether a value is a real number, of Python or of NumPy; a truth value is none."""
    number = plain(value)
    return isinstance(number, int | float) and not isinstance(number, bool)


def _number(name: str, value: Any, rule: str, fits: Callable[[float], bool]) -> float:
    if is_number(value) and fits(value):
        return float(value)
    raise InvalidInputError(f"{name} must be {rule}; got {shortened(value)}.")
