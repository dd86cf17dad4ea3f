from __future__ import annotations

import numpy as np

from shoal.model import Stateful


class Inner(Stateful):
    changing = ("values",)

    def __init__(self) -> None:
        self.values = np.zeros(3)


class Outer(Stateful):
    changing = ("inner", "rng", "count")

    def __init__(self, seed: int) -> None:
        self.inner = Inner()
        self.rng = np.random.default_rng(seed)
        self.count = 0

    def step(self) -> float:
        self.count += 1
        self.inner.values += self.rng.random(3)
        return float(self.inner.values.sum()) + self.count


def test_a_restored_object_goes_on_exactly_and_leaves_the_state_alone() -> None:
    first = Outer(1)
    first.step()
    state = first.state()
    expected = [first.step() for _ in range(5)]
    for _ in range(2):
        other = Outer(2)
        other.restore(state)
        assert [other.step() for _ in range(5)] == expected
