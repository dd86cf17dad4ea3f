"""Saving and restoring a learner in mid-run, exactly.

A ``Stateful`` object names the attributes that change while it runs. Its state is made of plain
values only (numbers, strings, arrays, lists, dicts), so that any store can keep it.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np

from shoal.errors import InvalidInputError
from shoal.model.numbers import shortened

State = dict[str, Any]


class Stateful:
    """An object whose running state can be saved and restored, bit for bit."""

    changing: ClassVar[tuple[str, ...]] = ()
    """Attributes that change while it runs: plain values, arrays, generators, Stateful objects,
    and lists or NamedTuples of these. A restored object keeps its own generators, Stateful objects
    and NamedTuples, so that these stay of the kind and number that they are when it is made."""

    earlier_names: ClassVar[Mapping[str, str]] = {}
    """What version 0.1 called some attributes and fields of NamedTuples."""

    def state(self) -> State:
        """Return a copy of everything that changes while this runs."""
        for name in self.changing:
            if not hasattr(self, name):
                raise InvalidInputError(
                    f"changing must name attributes of {type(self).__name__}; got {name!r}, which "
                    "it does not have."
                )
        return {name: _take(getattr(self, name)) for name in self.changing}

    def restore(self, state: State) -> None:
        """Continue from ``state`` exactly as the object that it was taken from would have."""
        for name in self.changing:
            value = getattr(self, name)
            setattr(self, name, _put(name, value, self._find(name, value, state)))

    def parts(self) -> dict[str, str]:
        """Return the kind of everything in the state that is more than a plain value, by place."""
        names = [name for name in self.changing if hasattr(self, name)]
        return dict(part for name in names for part in _parts(name, getattr(self, name)))

    def _find(self, name: str, value: Any, state: State) -> Any:
        """Return what was saved of ``value``; version 0.1 saved a NamedTuple's fields one by one.

        Where they have no other earlier name, they had the same, or the same after an underscore.
        """
        if not isinstance(state, Mapping):
            raise no_state(self, state, name)
        if _is_named(value) and not isinstance(state.get(name), dict):
            return {part: self._find(part, getattr(value, part), state) for part in value._fields}
        for key in (name, self.earlier_names.get(name, f"_{name}")):
            if key in state:
                return state[key]
        raise no_state(self, state, name)


def no_state(owner: Stateful, state: Any, name: str) -> InvalidInputError:
    """Return what to say of something that lacks ``name``, and so is no state of ``owner``."""
    return InvalidInputError(
        f"state must be what {type(owner).__name__}.state() returned, with {name!r}; "
        f"got {shortened(state)}."
    )


def _take(value: Any) -> Any:
    """Return a copy of a value as plain data."""
    if isinstance(value, Stateful):
        return value.state()
    if isinstance(value, np.random.Generator):
        return deepcopy(value.bit_generator.state)
    if _is_named(value):
        return {name: _take(part) for name, part in value._asdict().items()}
    if isinstance(value, list):
        return [_take(part) for part in value]
    return deepcopy(value)


def _put(name: str, value: Any, saved: Any) -> Any:
    """Return ``value`` in the state that was ``saved`` of it."""
    if isinstance(value, Stateful):
        value.restore(saved)
        return value
    if isinstance(value, np.random.Generator):
        value.bit_generator.state = deepcopy(saved)
        return value
    if _is_named(value):
        fields = {part: _put(f"{name}.{part}", getattr(value, part), saved[part]) for part in saved}
        return type(value)(**fields)
    if isinstance(value, list) and any(_parts(name, value)):
        if len(saved) != len(value):
            raise InvalidInputError(
                f"{name} must be as long as when it is made, {len(value)}; "
                f"got {len(saved)} in the state."
            )
        return [
            _put(f"{name}[{i}]", *pair) for i, pair in enumerate(zip(value, saved, strict=True))
        ]
    return deepcopy(saved)


def _parts(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield place and kind of what a state holds that is more than a plain value."""
    if isinstance(value, list):
        for i, part in enumerate(value):
            yield from _parts(f"{name}[{i}]", part)
    elif isinstance(value, Stateful):
        yield name, type(value).__name__
        yield from ((f"{name}.{place}", kind) for place, kind in value.parts().items())
    elif isinstance(value, np.random.Generator):
        yield name, "Generator"
    elif _is_named(value):
        yield name, type(value).__name__
        for part, content in value._asdict().items():
            yield from _parts(f"{name}.{part}", content)


def check_parts(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Refuse an object whose ``parts`` are not those that it was made with.

    >>> check_parts({"models[0]": "Model"}, {"models[0]": "Model", "models[1]": "Model"})
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: models[1] must be of the kind that it was when it was made, a \
plain value or none: generators, NamedTuples, Stateful objects and lists of them keep their kind \
and number; got Model.
    """
    for place in (*before, *after):
        if before.get(place) != after.get(place):
            was, now = (parts.get(place, "a plain value or none") for parts in (before, after))
            raise InvalidInputError(
                f"{place} must be of the kind that it was when it was made, {was}: generators, "
                "NamedTuples, Stateful objects and lists of them keep their kind and number; "
                f"got {now}."
            )


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")
