"""The constants of the learner for large populations.

*Model* says what the normal model needs, *guard* keeps numbers finite, *cost* bounds the work of a
round. What was chosen by regret is shown as it is, on large populations
(docs/benchmarks/populations.md), real conditions (conditions.md) and drawn instances (survey.md);
the reasons are in docs/decisions/flagship.md, the formulas in docs/theory.md.
"""

from __future__ import annotations

from typing import NamedTuple


class PopulationConstants(NamedTuple):
    """Each constant with its unit and with what chose it."""

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
    max_factor_ratio: float = 1 / 3  # of b(1 - b), the variance of all factors; model: uniform

    block_shares: tuple[float, ...] = (0.03, 0.1, 0.3)  # of the rounds left; decisions/flagship.md
    block_halvings: tuple[float, ...] = (1.0, 3.0, 10.0)  # times what halves a variance, if less
    table_steps: int = 64  # entries per unit in the table of E[(t - u)+]; cost
    max_deviations: float = 16.0  # beyond which no improvement counts: the table's end; cost

    unknown_rounds: float = 100.0  # rounds expected at first without a horizon; survey.md
    unknown_growth: float = 1.0  # more of them per round played; survey.md
    max_period: int = 4  # rounds between a user's decisions; cost: more regret was not measured
    period_parts: int = 4  # at least as many decisions in the rounds played, and in those left
    max_group_factor: int = 3  # times the least group size; beyond, merging does as well: cost
    report_rate_smoothing: float = 0.2  # weight of one round in the rate of reports; conditions.md
    attempts: int = 3  # rounds in which a new arm is tried, as too few may report; survey.md

    max_panel_share: float = 0.5  # of users; guard
    n_draws: int = 400  # normal vectors, and their opposites, per expected maximum; cost
    n_signs: int = 6  # random signs of the hidden factor, averaged; cost
    panel_evidence: float = 1 / 3  # of the rounds left, over all arms, in a panel's value; model


POPULATION = PopulationConstants()
