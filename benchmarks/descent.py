"""Coordinate descent on a grid without edges: a choice ends where every neighbour is worse.

It begins from the best of a coarse grid of starting points, since there are many valleys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

Point = tuple[int, ...]


@dataclass(frozen=True)
class Axis:
    """An option whose value at step k is ``start · factor^k``, or ``start + k`` for counts."""

    option: str
    start: float
    factor: float = 0.0  # 0 for counts
    least: float = 0.0
    reach: int = 2  # steps to either side that must all be worse
    starts: tuple[int, ...] = (0,)  # steps at which a search may begin

    def value(self, step: int) -> float:
        """Return the option's value, a whole number for counts."""
        return self.start * self.factor**step if self.factor else int(self.start) + step


@dataclass
class Descent:
    """The least of ``loss`` over a grid, one axis at a time."""

    axes: tuple[Axis, ...]
    loss: Callable[[Mapping[str, Any]], float]
    tried: dict[Point, float] = field(default_factory=dict)

    def options(self, point: Point) -> dict[str, float]:
        """Return the options at a point of the grid."""
        return {axis.option: axis.value(step) for axis, step in zip(self.axes, point, strict=True)}

    def run(self) -> tuple[dict[str, float], float]:
        """Return the best options and their loss; all within an axis's ``reach`` were tried."""
        best = min(product(*(axis.starts for axis in self.axes)), key=self._measure)
        while True:
            start = best
            for index in range(len(self.axes)):
                best = self._along(best, index)
            if best == start:
                return self.options(best), self._measure(best)

    def _along(self, point: Point, index: int) -> Point:
        axis = self.axes[index]
        while True:
            line = [point]
            for step in range(-axis.reach, axis.reach + 1):
                other = (*point[:index], point[index] + step, *point[index + 1 :])
                if step and axis.value(other[index]) >= axis.least:
                    line.append(other)
            best = min(line, key=self._measure)  # the first of equals: stay where nothing is won
            if best == point:
                return point
            point = best

    def _measure(self, point: Point) -> float:
        if point not in self.tried:
            self.tried[point] = self.loss(self.options(point))
        return self.tried[point]
