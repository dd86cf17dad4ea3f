"""The constants of both learners, each with its unit and with what chose it.

*Model* says what the normal model needs, *guard* keeps numbers finite, *cost* bounds the work of a
round. What was chosen by regret names the page of docs/benchmarks with the instances that it is
for; ``python -m benchmarks sensitivity`` plays every constant halved and doubled. The reasons are
in docs/decisions/flagship.md, the formulas in docs/theory.md.
"""

from typing import NamedTuple


class JointConstants(NamedTuple):
    """Of the learner for small shards."""

    max_users: int = 256  # users of a shard; cost: populations.md, "The seam"

    prior_mean: float = 0.5  # reward; model: of uniform means
    prior_variance: float = 1 / 12  # reward²; model: of uniform means, shared and per user
    min_variance: float = 1e-12  # reward²; guard
    min_noise_mean: float = 0.05  # reward, distance from 0 and 1; guard of m(1 - m)
    noise_prior: float = 20.0  # totals; model: weight of the prior that the noise is m(1 - m)
    noise_rate: float = 0.01  # weight of a total in the mean noise of its arm; model
    refresh_growth: float = 1.3  # factor of rounds between updates of the prior; cost
    n_ratios: int = 13  # candidates 1, 1/2, 1/4, ... of the ratio r; model: down to 1/4096
    ratio_power: float = 0.25  # of r in its prior; model: r of uniform means, 1/3, is its mean
    outsider_shares: tuple[float, ...] = (0.2, 0.1, 0.05, 0.025, 0.0125)  # of users; model
    min_ratio_mean: float = 0.01  # reward, distance from 0 and 1; guard of b(1 - b)
    min_information: float = 1e-6  # 1 / reward²; guard

    early_end: float = 0.02  # of a test's observations, if the arm is not better; regret.md
    unknown_rounds: float = 2000.0  # rounds expected at first without a horizon; growth.md
    unknown_growth: float = 6.0  # more of them per round played; growth.md
    plans_per_arm: int = 100  # at least, in the rounds played, and in those left; cost
    min_stake: float = 1e-3  # reward per round, of a whole crowd worth observing; cost
    max_deviations: float = 8.0  # standard deviations beyond which no improvement counts; guard

    n_candidates: int = 8  # groups tried when one is recruited; cost
    small_loss: float = 0.02  # reward per round; below it, variety counts as much; regret.md


JOINT = JointConstants()


class PopulationConstants(NamedTuple):
    """Of the learner for large populations."""

    first_mean: float = 0.3  # reward; model: most rewards are rather rare
    first_variance: float = 0.1  # reward²; model: of a uniform mean, 1/12, and a little more
    noise_prior: float = 2.0  # totals of least size; model: weight of the noise r(1 - r) at first
    min_mean: float = 1e-4  # reward, distance of the population's means from 0 and 1; guard

    refresh_growth: float = 1.15  # factor of rounds between updates of the prior; cost
    max_prior_users: int = 5000  # users that the prior is learnt from; cost
    max_terms: int = 50_000_000  # of the information's sums, beyond which users are skipped; cost
    min_summed: int = 200  # users in the information, however many terms that takes; guard
    min_spread_mean: float = 1e-3  # reward, distance from 0 and 1; guard of a mean's spread
    unknown_variance: float = 1e6  # of an entry without any evidence; guard
    ridge: float = 1e-6  # relative, keeps the scaled information invertible; guard
    evident_deviations: float = 2.0  # beyond which a larger variance is believed; calibration.md
    max_factor_ratio: float = 1 / 3  # of b(1 - b), the variance of all factors; model: uniform

    early_ends: tuple[float, float] = (0.3, 0.02)  # of a test's plays, if the arm is not better,
    # of core users and of outsiders; decisions/flagship.md
    max_deviations: float = 8.0  # beyond which no improvement counts; guard

    unknown_rounds: float = 100.0  # rounds expected at first without a horizon; survey.md
    unknown_growth: float = 1.0  # more of them per round played; survey.md
    max_period: int = 4  # rounds between a user's decisions; cost: more regret was not measured
    period_parts: int = 4  # at least as many decisions in the rounds played, and left; cost
    max_group_factor: int = 3  # times the least group size; beyond, merging does as well: cost
    report_rate_smoothing: float = 0.2  # weight of one round in the rate of reports; conditions.md
    attempts: int = 3  # rounds in which a new arm is tried, as too few may report; survey.md

    max_panel_share: float = 0.5  # of users; guard
    n_draws: int = 400  # normal vectors, and their opposites, per expected maximum; cost
    n_signs: int = 6  # random signs of the hidden factor, averaged; cost
    panel_evidence: float = 1 / 3  # of the rounds left, over all arms, in a panel's value; model


POPULATION = PopulationConstants()
