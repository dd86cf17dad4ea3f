"""How large groups should be where not everyone reports.

Groups that are short of reporters are merged (``model.merging``), so that a group need not be large
enough alone: smaller groups are finer pieces to merge, larger ones need no merging.
"""

from __future__ import annotations

import math

from shoal.kernels import kernel


@kernel()
def group_size(min_group_size: int, report_rate: float, max_size: int) -> int:
    """Return the size, up to ``max_size``, with the most released totals per member.

    With X of n members reporting, X binomial, a group makes one total if X >= C; else it takes
    ceil(C / X) groups like it to make one.

    >>> [group_size(4, 0.7, 50), group_size(20, 0.7, 50), group_size(20, 0.05, 50)]
    [5, 32, 20]
    """
    best, highest = min_group_size, 0.0
    if report_rate >= 1.0:
        return best
    for size in range(min_group_size, max_size + 1):
        chance = (1.0 - report_rate) ** size  # of X = 0
        made, short = 0.0, chance
        for reports in range(1, min_group_size):
            chance *= (size - reports + 1) / reports * report_rate / (1.0 - report_rate)
            made += chance / math.ceil(min_group_size / reports)
            short += chance
        made += 1.0 - short
        if made > highest * size:
            best, highest = size, made / size
    return best


@kernel()
def safe_size(min_group_size: int, report_rate: float, max_size: int) -> int:
    """Return the least size that reaches ``min_group_size`` reporters nine times out of ten."""
    size = min_group_size
    if report_rate < 1.0:
        while size < max_size and (
            size * report_rate - 1.3 * math.sqrt(size * report_rate * (1.0 - report_rate))
            < min_group_size - 0.5
        ):
            size += 1
    return size
