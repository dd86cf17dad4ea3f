"""Saving and restoring a learner in mid-run, exactly.

A ``Stateful`` object names the attributes that change while it runs. Its state is made of plain
values only (numbers, strings, arrays, lists, dicts), so that any store can keep it.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, ClassVar

import numpy as np

State = dict[str, Any]


class Stateful:
    """Something whose running state can be taken out and put back, bit for bit."""

    changing: ClassVar[tuple[str, ...]] = ()
    """Attributes that change while it runs: plain values, arrays, generators or Stateful ones."""

    def state(self) -> State:
        """Return a copy of everything that changes while this runs."""
        return {name: _take(getattr(self, name)) for name in self.changing}

    def restore(self, state: State) -> None:
        """Continue from ``state`` exactly as the object that it was taken from would have."""
        for name in self.changing:
            value = getattr(self, name)
            if isinstance(value, Stateful):
                value.restore(state[name])
            elif isinstance(value, np.random.Generator):
                value.bit_generator.state = deepcopy(state[name])
            else:
                setattr(self, name, deepcopy(state[name]))


def _take(value: Any) -> Any:
    if isinstance(value, Stateful):
        return value.state()
    if isinstance(value, np.random.Generator):
        return deepcopy(value.bit_generator.state)
    return deepcopy(value)
