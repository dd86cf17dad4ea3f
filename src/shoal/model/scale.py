"""What rewards between 0 and 1 stand for in the units of a log, and parts of them in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

FEW_PERCENT = 0.1
"""Parts that all lie below this are written with a decimal."""


class Scale(NamedTuple):
    """What rewards of 0 and 1 stand for.

    A scale that moves 0, such as the one of the least and the largest reward, would make any gain
    look large: 95 points are 1 % more than 94, and 25 % more if both are counted from 90.
    Therefore parts are those of the log's own units.
    """

    zero: float = 0.0
    one: float = 1.0

    @property
    def changes(self) -> bool:
        """Whether the log has other units than those that are played."""
        return self != UNCHANGED

    def part(self, difference: float, reward: float) -> float | None:
        """Return a difference as a part of a reward, both on the scale; None of 0 or less.

        >>> Scale(90.0, 99.0).part(1 / 9, 4 / 9)  # of 94 points, one more
        0.010638297872340425
        """
        whole = reward + self.zero / (self.one - self.zero)
        return difference / whole if whole > 0 else None

    def parts_in_words(self, differences: Sequence[float], reward: float) -> list[str]:
        """Write differences as parts of a reward, or in the log's units if it is not above 0.

        A part that would round to 0 has a decimal.

        >>> Scale().parts_in_words([0.2, -0.001], 1.0), Scale(-5.0, 5.0).parts_in_words([0.2], 0.5)
        (['20%', '-0.1%'], ['2'])
        """
        parts = [self.part(difference, reward) for difference in differences]
        known = [part for part in parts if part is not None]
        if not known:
            return [f"{difference * (self.one - self.zero):.2g}" for difference in differences]
        few = max(map(abs, known)) < FEW_PERCENT
        return [f"{part:z.{int(few or 0 < abs(part) <= 0.005)}%}" for part in known]

    def in_words(self, difference: float, reward: float) -> str:
        """Write one difference with two digits.

        >>> Scale().in_words(0.01, 0.2), Scale(90.0, 99.0).in_words(1 / 9, 4 / 9)
        ('5%', '1.1%')
        """
        part = self.part(difference, reward)
        units = difference * (self.one - self.zero)
        return f"{units:.2g}" if part is None else f"{100 * part:.2g}%"

    def __str__(self) -> str:
        return f"0 stands for {self.zero:g} and 1 for {self.one:g}"


UNCHANGED = Scale()
"""Rewards are played as they are in the log."""
