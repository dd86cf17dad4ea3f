"""Groups with too few reporters are merged inside their arm *before* anything is released.

What is merged with what depends on the numbers of reporters alone, never on a reward.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Merged:
    """Groups of one arm whose totals are released as one."""

    arm: int
    parts: tuple[int, ...]
    reporters: int


def merge(
    reporters: Mapping[int, int], arms: Mapping[int, int], *, least: int
) -> tuple[list[Merged], list[int]]:
    """Return what is released and which groups are withheld for ever.

    Short groups of an arm join each other, smallest first, until ``least`` is reached; what is
    left over joins the smallest total of the arm that is large enough. Where there is none, it is
    withheld, as is a group that nobody reported in.

    Parameters
    ----------
    reporters
        Reporters of each group.
    arms
        Arm of each group.
    least
        Least reporters behind a released total.

    Examples
    --------
    >>> merge({0: 5, 1: 2, 2: 2, 3: 3}, {0: 0, 1: 0, 2: 0, 3: 1}, least=4)
    ([Merged(arm=0, parts=(0,), reporters=5), Merged(arm=0, parts=(1, 2), reporters=4)], [3])
    """
    by_arm: dict[int, list[int]] = {}
    for group in sorted(reporters):
        by_arm.setdefault(arms[group], []).append(group)
    released: list[Merged] = []
    withheld: list[int] = []
    for arm in sorted(by_arm):
        whole = [(reporters[g], [g]) for g in by_arm[arm] if reporters[g] >= least]
        gathered, parts = 0, list[int]()
        for group in sorted(by_arm[arm], key=lambda g: (reporters[g], g)):
            if 0 < reporters[group] < least:
                gathered += reporters[group]
                parts.append(group)
                if gathered >= least:
                    whole.append((gathered, parts))
                    gathered, parts = 0, []
        if parts and whole:
            index = min(range(len(whole)), key=lambda i: (whole[i][0], whole[i][1]))
            whole[index] = (whole[index][0] + gathered, whole[index][1] + parts)
        elif parts:
            withheld += parts
        withheld += [g for g in by_arm[arm] if reporters[g] == 0]
        released += [Merged(arm, tuple(sorted(groups)), n) for n, groups in whole]
    return sorted(released, key=lambda m: m.parts), sorted(withheld)
