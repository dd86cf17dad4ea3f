"""The constants of the learner for small shards.

*Model* says what the normal model needs, *guard* keeps numbers finite, *cost* bounds the work of a
round. What was chosen by regret is shown as it is, on instances of every kind
(docs/benchmarks/regret.md), drawn instances (survey.md) and growing horizons (growth.md); the
reasons are in docs/decisions/flagship.md, the formulas in docs/theory.md.
"""

from __future__ import annotations

from typing import NamedTuple


class JointConstants(NamedTuple):
    """Each constant with its unit and with what chose it."""

    max_users: int = 256  # users of a shard; cost: docs/benchmarks/populations.md, "The seam"

    prior_mean: float = 0.5  # reward; model: of uniform means
    prior_variance: float = 1 / 12  # reward²; model: of uniform means, shared and per user
    min_variance: float = 1e-12  # reward²; guard
    min_noise_mean: float = 0.05  # reward, distance from 0 and 1; guard of m(1 - m)
    noise_prior: float = 20.0  # totals; model: weight of the prior that the noise is m(1 - m)
    noise_rate: float = 0.01  # weight of a total in the mean noise of its arm; model
    refresh_growth: float = 1.3  # factor of rounds between updates of the prior; cost
    n_ratios: int = 13  # candidates 1, 1/2, 1/4, ... of the ratio r; model: down to 1/4096
    min_ratio_mean: float = 0.01  # reward, distance from 0 and 1; guard of b(1 - b)
    min_log_change: float = 0.05  # of a user variance, for which a posterior is recomputed; cost

    patience: float = 2.0  # times the rounds left: many decisions use what is learnt; regret.md
    unknown_rounds: float = 1000.0  # rounds expected at first without a horizon; growth.md
    unknown_growth: float = 3.0  # more of them per round played; growth.md
    settled_rounds: int = 2000  # rounds until prices are updated in turns only; cost
    settled_period: int = 8  # rounds between a user's updates of prices from then on; cost
    min_stake: float = 1e-3  # reward per round, of a whole crowd worth observing; cost
    max_deviations: float = 8.0  # standard deviations beyond which no improvement counts; guard

    n_candidates: int = 8  # groups tried when one is recruited; cost
    small_loss: float = 0.02  # reward per round; below it, variety counts as much; regret.md


JOINT = JointConstants()
