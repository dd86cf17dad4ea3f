from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from shoal.errors import InvalidInputError
from shoal.model import Stateful


class Pair(NamedTuple):
    left: Any
    right: Any


class Inner(Stateful):
    changing: ClassVar[tuple[str, ...]] = ("values",)

    def __init__(self) -> None:
        self.values = np.zeros(3)


class Outer(Stateful):
    changing: ClassVar[tuple[str, ...]] = ("rng", "inner", "queue", "bundle", "shards")

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.inner = Inner()
        self.queue: list[tuple[int, int]] = [(1, 2)]
        self.bundle = Pair(np.zeros(2), Inner())
        self.shards = [Inner(), Inner()]
        self.constant = seed


def test_a_restored_object_continues_bit_for_bit() -> None:
    first = Outer(seed=1)
    first.rng.random(5)
    first.inner.values[1] = 0.1
    first.bundle.left[0] = 0.2
    first.bundle.right.values[0] = 0.3
    first.shards[1].values[2] = 0.4
    kept = first.state()
    expected = first.rng.random(3)
    first.inner.values[1] = 9.0
    first.bundle.left[0] = 9.0
    first.bundle.right.values[0] = 9.0
    first.shards[1].values[2] = 9.0
    first.queue.append((3, 4))

    second = Outer(seed=2)
    second.restore(kept)
    assert np.array_equal(second.rng.random(3), expected)
    assert second.inner.values.tolist() == [0.0, 0.1, 0.0]
    assert second.bundle.left.tolist() == [0.2, 0.0]
    assert second.bundle.right.values.tolist() == [0.3, 0.0, 0.0]
    assert second.shards[1].values.tolist() == [0.0, 0.0, 0.4]
    assert second.queue == [(1, 2)]
    assert second.constant == 2


def test_bundles_are_kept_as_plain_values() -> None:
    state = Outer(seed=1).state()
    assert state["bundle"].keys() == {"left", "right"}
    assert [part.keys() for part in state["shards"]] == [{"values"}, {"values"}]


def test_a_restored_object_shares_nothing_with_the_state() -> None:
    state = Outer(seed=1).state()
    restored = Outer(seed=2)
    restored.restore(state)
    restored.inner.values[0] = restored.bundle.left[0] = 5.0
    restored.queue.append((9, 9))
    assert state["inner"]["values"][0] == state["bundle"]["left"][0] == 0.0
    assert state["queue"] == [(1, 2)]


class Lists(Stateful):
    changing: ClassVar[tuple[str, ...]] = ("generators", "pairs", "nested", "models")

    def __init__(self, seed: int, n_models: int = 1) -> None:
        self.generators = np.random.default_rng(seed).spawn(2)
        self.pairs = [Pair(seed, np.zeros(2)), Pair(seed, 0)]
        self.nested: list[list[Any]] = [[Pair(seed, 0)], [1]]
        self.models = [Inner() for _ in range(n_models)]


def test_lists_of_generators_and_of_named_tuples_come_back_as_such() -> None:
    first, second = Lists(seed=1), Lists(seed=2)
    first.generators[1].random()
    state = first.state()
    second.restore(state)
    assert second.generators[1].random() == first.generators[1].random()
    assert isinstance(second.pairs[0], Pair)
    assert second.pairs[1] == second.nested[0][0] == Pair(1, 0)
    assert second.nested[1] == [1]
    assert second.parts() == first.parts()
    assert first.parts().items() >= {
        "generators[1]": "Generator", "pairs[0]": "Pair", "nested[0][0]": "Pair",
        "models[0]": "Inner",
    }.items()  # fmt: skip


def test_a_list_of_another_length_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"models must be as long as .* 1; got 2 in the st"):
        Lists(seed=1).restore(Lists(seed=1, n_models=2).state())
