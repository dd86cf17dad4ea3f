"""Saving and restoring a learner in mid-run, exactly.

A ``Stateful`` object names the attributes that change while it runs. Its state is made of plain
values only (numbers, strings, arrays, lists, dicts), so that any store can keep it.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np

State = dict[str, Any]


class Stateful:
    """An object whose running state can be saved and restored, bit for bit."""

    changing: ClassVar[tuple[str, ...]] = ()
    """Attributes that change while it runs: plain values, arrays, generators, Stateful objects,
    and lists or NamedTuples of these."""

    earlier_names: ClassVar[Mapping[str, str]] = {}
    """What version 0.1 called some attributes and fields of NamedTuples."""

    def state(self) -> State:
        """Return a copy of everything that changes while this runs."""
        return {name: _take(getattr(self, name)) for name in self.changing}

    def restore(self, state: State) -> None:
        """Continue from ``state`` exactly as the object that it was taken from would have."""
        for name in self.changing:
            value = getattr(self, name)
            setattr(self, name, _put(value, self._find(name, value, state)))

    def _find(self, name: str, value: Any, state: State) -> Any:
        """Return what was saved of ``value``; version 0.1 saved a NamedTuple's fields one by one.

        Where they have no other earlier name, they had the same, or the same after an underscore.
        """
        if _is_named(value) and not isinstance(state.get(name), dict):
            return {part: self._find(part, getattr(value, part), state) for part in value._fields}
        return state[name if name in state else self.earlier_names.get(name, f"_{name}")]


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


def _put(value: Any, saved: Any) -> Any:
    """Return ``value`` in the state that was ``saved`` of it."""
    if isinstance(value, Stateful):
        value.restore(saved)
        return value
    if isinstance(value, np.random.Generator):
        value.bit_generator.state = deepcopy(saved)
        return value
    if _is_named(value):
        return type(value)(**{name: _put(getattr(value, name), saved[name]) for name in saved})
    if isinstance(value, list) and any(isinstance(part, Stateful) for part in value):
        return [_put(part, of_part) for part, of_part in zip(value, saved, strict=True)]
    return deepcopy(saved)


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")
