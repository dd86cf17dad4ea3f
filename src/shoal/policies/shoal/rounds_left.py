"""For how many more rounds the flagship's learners can use what they learn."""

import math

from shoal.model import Problem
from shoal.policies.shoal.constants import JointConstants, PopulationConstants


def rounds_left(
    problem: Problem, rounds: int, drift: float, constants: JointConstants | PopulationConstants
) -> float:
    """Return the rounds for which what is learnt after ``rounds`` can be used.

    With drift, no more than an observation is useful: a Kalman filter of totals with noise variance
    q forgets at the rate of sqrt(drift / q), and an observation is taken to last twice as long. For
    uniform means, q = C / 6.
    """
    if problem.horizon is None:
        left = constants.unknown_rounds + constants.unknown_growth * rounds
    else:
        left = float(problem.horizon - rounds)
    return min(left, 2.0 * math.sqrt(problem.min_group_size / 6 / drift)) if drift > 0 else left
