"""The errors that Shoal raises, one small hierarchy.

Every message names the thing, the rule and the value:
``min_group_size must be between 1 and n_users=10; got 0.``
"""

from collections.abc import Iterable
from difflib import get_close_matches


class ShoalError(Exception):
    """Anything that Shoal refuses; the command line shows its message in one line."""


class InvalidInputError(ShoalError, ValueError):
    """An argument, option or file that breaks a stated rule."""


class AnonymityError(InvalidInputError):
    """A plan or a total that would show the learner fewer than ``min_group_size`` users."""


class DemandError(InvalidInputError):
    """A demand for feedback that no sequence of anonymous assignments can meet."""


def unwritable(path: object, error: Exception) -> InvalidInputError:
    """Return what to say of a path that can't be written, or is none."""
    reason = getattr(error, "strerror", None) or error
    return InvalidInputError(f"path must be a file that can be written; got {path!r}: {reason}.")


def type_of(value: object) -> str:
    """Name the type of a value, for messages where the value itself would be too long.

    >>> type_of([1, 2]), type_of(3)
    ('a list', 'an int')
    """
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeio' else 'a'} {name}"


class LostTaskError(ShoalError):
    """A task that killed its workers time after time."""


class UnknownNameError(InvalidInputError):
    """A name that is not known, with a ``suggestion`` or the nearest known ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str], suggestion: str = "") -> None:
        super().__init__(kind, name, sorted(known), suggestion)  # what pickle hands to a copy

    def __str__(self) -> str:
        kind, name, known, suggestion = self.args
        near = get_close_matches(str(name), known, n=3, cutoff=0.5)
        hint = f"known: {', '.join(known)}." if known else "there are none."
        if suggestion:
            hint = f"did you mean {suggestion}? Known: {', '.join(known)}."
        elif near:
            hint = f"did you mean {' or '.join(map(repr, near))}?"
        return f"{kind} must be a known name; got {name!r}: {hint}"
