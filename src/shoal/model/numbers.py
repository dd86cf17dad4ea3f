"""Reading numbers at the edge: by name, with the rule, or not at all."""

from __future__ import annotations

import math
from operator import index
from typing import Any

from shoal.errors import InvalidInputError

LARGEST = 2**63 - 1


def whole_number(name: str, value: Any, *, least: int | None = 1) -> int:
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
            if number > LARGEST:
                raise InvalidInputError(f"{name} must be at most 2**63 - 1; got more.")
            if least is None or number >= least:
                return number
    bound = "" if least is None else f" of at least {least}"
    raise InvalidInputError(f"{name} must be a whole number{bound}; got {value!r}.")


def not_negative(name: str, value: Any) -> float:
    """Return ``value`` as a finite float of at least 0, or refuse it by name.

    >>> not_negative("drift", -1)
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: drift must be a number of at least 0; got -1.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value)
    raise InvalidInputError(f"{name} must be a number of at least 0; got {value!r}.")


def share(name: str, value: Any) -> float:
    """Return ``value`` as a float between 0 and 1, or refuse it by name.

    >>> share("participation", 1.5)
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: participation must be a number between 0 and 1; got 1.5.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise InvalidInputError(f"{name} must be a number between 0 and 1; got {value!r}.")


def positive_number(name: str, value: Any) -> float:
    """Return ``value`` as a finite float above 0, or refuse it by name.

    >>> positive_number("gamma", "much")
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: gamma must be a positive number; got 'much'.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise InvalidInputError(f"{name} must be a positive number; got {value!r}.")
