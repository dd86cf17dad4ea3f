"""Feedback against a naive loop that draws every user's report and reward in every round.

Seeds are fixed. Each comparison fails by chance with probability at most 1e-8, so the whole file
with probability below 1e-6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from shoal.environments import make_environment
from shoal.model import Feedback, Plan, Problem

FALSE_ALARM = 1e-8
Z = float(stats.norm.isf(FALSE_ALARM / 2))

PROBLEM = Problem(n_users=7, n_arms=2, min_group_size=2)
MEANS = np.array(
    [[0.9, 0.1], [0.2, 0.3], [0.7, 0.6], [0.0, 1.0], [0.5, 0.4], [0.8, 0.25], [0.6, 0.05]]
)
ARMS = [0, 0, 0, 1, 1, 1, 0]
GROUPS = [0, 0, 0, 2, 2, 2, -1]  # nobody is in group 1
CHANCES = np.array([0.9, 0.3, 0.5, 0.6, 0.6, 0.2, 0.7])

Draw = Callable[[float, np.random.Generator], float]
DRAWS: dict[str, Draw] = {
    "bernoulli": lambda mean, rng: float(rng.random() < mean),
    "gaussian": lambda mean, rng: rng.normal(mean, 1.0),
    "bounded": lambda mean, rng: rng.beta(2 * mean, 2 - 2 * mean) if 0 < mean < 1 else mean,
    "deterministic": lambda mean, rng: mean,
}


def naive_play(
    plan: Plan, draw: Draw, chances: NDArray[np.float64], rng: np.random.Generator
) -> Feedback:
    n_users = plan.problem.n_users
    totals = np.zeros(plan.n_groups)
    released = np.zeros(plan.n_groups, np.int32)
    reported = np.zeros(n_users, np.int32)
    for _ in range(plan.repeats):
        for group in range(plan.n_groups):
            members = np.flatnonzero(plan.groups == group)
            reporters = [user for user in members if rng.random() < chances[user]]
            if len(reporters) >= plan.problem.min_group_size:
                released[group] += 1
                reported[reporters] += 1
                totals[group] += sum(draw(MEANS[user, plan.arms[user]], rng) for user in reporters)
    return Feedback(totals, released, reported)


def assert_same_distribution(first: list[object], second: list[object]) -> None:
    """Compare two samples of a discrete outcome by chi-square, rare outcomes counted as one."""
    counts = Counter(first), Counter(second)
    both = counts[0] + counts[1]
    common = [outcome for outcome, n in both.items() if n >= 20]
    table = np.array([[count[outcome] for outcome in common] for count in counts])
    rest = np.array([[len(first)], [len(second)]]) - table.sum(axis=1, keepdims=True)
    if rest.sum() >= 20:
        table = np.hstack([table, rest])
    assert table.shape[1] >= 2
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


def samples(
    rewards: str, participation: float | NDArray[np.float64], repeats: int, n: int
) -> tuple[list[Feedback], list[Feedback]]:
    rng, naive_rng = np.random.default_rng(1), np.random.default_rng(2)
    plan = Plan(ARMS, GROUPS, repeats, problem=PROBLEM)
    environment = make_environment(rewards, PROBLEM, MEANS, rng=rng, participation=participation)
    chances = np.broadcast_to(participation, PROBLEM.n_users)
    return (
        [environment.play(plan) for _ in range(n)],
        [naive_play(plan, DRAWS[rewards], chances, naive_rng) for _ in range(n)],
    )


@pytest.mark.parametrize("repeats", [1, 4])
@pytest.mark.parametrize("participation", [1.0, 0.6, CHANCES], ids=["all", "some", "each"])
def test_bernoulli_feedback_is_distributed_as_round_by_round(
    participation: float | NDArray[np.float64], repeats: int
) -> None:
    ours, naive = samples("bernoulli", participation, repeats, 3000)
    assert_same_distribution([tuple(f.totals) for f in ours], [tuple(f.totals) for f in naive])
    for group in (0, 2):
        assert_same_distribution(
            [(f.totals[group], f.released[group]) for f in ours],
            [(f.totals[group], f.released[group]) for f in naive],
        )


@pytest.mark.parametrize("repeats", [1, 4])
def test_reports_are_distributed_as_round_by_round(repeats: int) -> None:
    ours, naive = samples("deterministic", CHANCES, repeats, 3000)
    for users in ([0, 1, 2], [3, 4, 5]):
        assert_same_distribution(
            [tuple(f.reported[users]) for f in ours], [tuple(f.reported[users]) for f in naive]
        )


@pytest.mark.parametrize("repeats", [1, 4])
@pytest.mark.parametrize("participation", [1.0, CHANCES], ids=["all", "each"])
@pytest.mark.parametrize("rewards", ["gaussian", "bounded"])
def test_continuous_totals_are_distributed_as_round_by_round(
    rewards: str, participation: float | NDArray[np.float64], repeats: int
) -> None:
    ours, naive = samples(rewards, participation, repeats, 3000)
    for group in (0, 2):
        test = stats.ks_2samp([f.totals[group] for f in ours], [f.totals[group] for f in naive])
        assert test.pvalue > FALSE_ALARM


def test_bernoulli_repeats_follow_the_convolution_of_binomials() -> None:
    plan = Plan(ARMS, GROUPS, 30, problem=PROBLEM)
    environment = make_environment("bernoulli", PROBLEM, MEANS, rng=np.random.default_rng(3))
    totals = np.array([environment.play(plan).totals[0] for _ in range(20_000)]).astype(int)
    exact = np.ones(1)
    for user in (0, 1, 2):
        exact = np.convolve(exact, stats.binom.pmf(np.arange(31), 30, MEANS[user, 0]))
    expected = exact * len(totals)
    likely = expected >= 10
    observed = np.bincount(totals, minlength=len(exact))
    test = stats.chisquare(
        np.append(observed[likely], observed[~likely].sum()),
        np.append(expected[likely], expected[~likely].sum()),
    )
    assert test.pvalue > FALSE_ALARM


VARIANCES: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "bernoulli": lambda means: means * (1 - means),
    "gaussian": lambda means: np.ones_like(means),
    "bounded": lambda means: means * (1 - means) / 3,
}


@pytest.mark.parametrize("repeats", [1, 50])
@pytest.mark.parametrize("rewards", VARIANCES)
def test_totals_have_the_mean_and_variance_of_their_rounds(rewards: str, repeats: int) -> None:
    n = 20_000
    plan = Plan(ARMS, GROUPS, repeats, problem=PROBLEM)
    environment = make_environment(rewards, PROBLEM, MEANS, rng=np.random.default_rng(4))
    totals = np.array([environment.play(plan).totals for _ in range(n)])
    for group, users, arm in ((0, [0, 1, 2], 0), (2, [3, 4, 5], 1)):
        mean = repeats * MEANS[users, arm].sum()
        variance = repeats * VARIANCES[rewards](MEANS[users, arm]).sum()
        centred = totals[:, group] - mean
        assert abs(centred.mean()) < Z * np.sqrt(variance / n)
        fourth = np.mean(centred**4)
        assert abs(np.mean(centred**2) - variance) < Z * np.sqrt((fourth - variance**2) / n)


@pytest.mark.parametrize("mean", [0.1, 0.3, 0.5])
def test_bounded_rewards_are_beta(mean: float) -> None:
    problem = Problem(n_users=1, n_arms=1, min_group_size=1)
    environment = make_environment("bounded", problem, [[mean]], rng=np.random.default_rng(5))
    plan = Plan([0], [0], problem=problem)
    rewards = [environment.play(plan).totals[0] for _ in range(5000)]
    assert stats.kstest(rewards, stats.beta(2 * mean, 2 - 2 * mean).cdf).pvalue > FALSE_ALARM
