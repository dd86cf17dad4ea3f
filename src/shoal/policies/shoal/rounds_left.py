"""For how many rounds an observation pays off: the horizon in a learner's terms."""

from __future__ import annotations

import math

from shoal.model import Problem


def rounds_left(
    problem: Problem, rounds: int, *, drift: float, at_first: float, growth: float
) -> float:
    """Return the rounds for which what is learnt after ``rounds`` can be used.

    Without a horizon, ``at_first`` rounds are expected before the first round, and ``growth`` more
    for each round played. With drift, no more than ``useful_rounds``.
    """
    if problem.horizon is None:
        left = at_first + growth * rounds
    else:
        left = float(problem.horizon - rounds)
    return min(left, useful_rounds(problem.min_group_size, drift)) if drift > 0 else left


def useful_rounds(min_group_size: int, drift: float) -> float:
    """Return for how many rounds an observation is useful where means gain ``drift`` in each.

    A Kalman filter of totals with noise variance q forgets at the rate of sqrt(drift / q); an
    observation is taken to last twice as long. For uniform means, q = C / 6.
    """
    return 2.0 * math.sqrt(min_group_size / 6 / drift)
