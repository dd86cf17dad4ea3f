"""What a played plan releases, and how it is distributed.

The oracle is a naive loop that draws every user's report and reward in every round. Seeds are
fixed. Each comparison fails by chance with probability at most 1e-8, so the whole file with
probability below 1e-6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from shoal.environments import REWARDS, make_environment
from shoal.errors import InvalidInputError
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
    members = [np.flatnonzero(plan.groups == group).tolist() for group in range(plan.n_groups)]
    for _ in range(plan.repeats):
        for group in range(plan.n_groups):
            reporters = [user for user in members[group] if rng.random() < chances[user]]
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw a valid plan: groups of C or more on one arm, gaps in the numbers, some in none."""
    min_group_size = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(min_group_size, min_group_size + 3), max_size=5))
    n_alone = draw(st.integers(0 if sizes else min_group_size, 6))
    n_users = sum(sizes) + n_alone
    numbers = draw(st.permutations(range(n_users)))[: len(sizes)]
    groups = np.array(np.repeat(numbers, sizes).tolist() + [-1] * n_alone, dtype=np.int64)
    arm_of_group = np.array(draw(st.lists(st.integers(0, 2), min_size=n_users, max_size=n_users)))
    order = np.array(draw(st.permutations(range(n_users))))
    problem = Problem(n_users, 3, min_group_size)
    groups = groups[order]
    return Plan(arm_of_group[groups], groups, draw(st.integers(1, 5)), problem=problem)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(plans(), st.sampled_from(sorted(REWARDS)), st.sampled_from([0.0, 0.5, 1.0]))
def test_every_release_counts_at_least_min_group_size_reporters(
    plan: Plan, rewards: str, participation: float
) -> None:
    problem = replace(plan.problem, bounded=REWARDS[rewards].bounded)
    plan = Plan(plan.arms, plan.groups, plan.repeats, problem=problem)
    rng = np.random.default_rng(plan.repeats)
    means = rng.random((plan.problem.n_users, 3))
    environment = make_environment(rewards, problem, means, rng=rng, participation=participation)
    feedback = environment.play(plan)
    feedback.check(plan)
    assert not feedback.reported[plan.groups < 0].any()
    plan = feedback.plan or plan  # short groups of one round may have been merged
    for group in range(plan.n_groups):
        users = np.flatnonzero(plan.groups == group)
        reported, released = feedback.reported[users], feedback.released[group]
        assert 0 <= released <= plan.repeats
        assert (reported <= released).all()
        assert reported.sum() >= plan.problem.min_group_size * released
        if participation == 1.0 and len(users):
            assert released == plan.repeats
            assert (reported == plan.repeats).all()
        if released == 0:
            assert feedback.totals[group] == 0.0
        if rewards == "deterministic":
            owed = (reported * means[users, plan.arms[users]]).sum()
            assert feedback.totals[group] == pytest.approx(owed)
        if rewards in ("bernoulli", "bounded"):
            assert 0.0 <= feedback.totals[group] <= reported.sum()
        if rewards == "bernoulli":
            assert feedback.totals[group] == int(feedback.totals[group])


def played(rewards: str, participation: float, repeats: int, seed: int) -> list[Feedback]:
    problem = Problem(n_users=6, n_arms=2, min_group_size=2)
    environment = make_environment(
        rewards,
        problem,
        np.linspace(0.05, 0.95, 12).reshape(6, 2),
        rng=np.random.default_rng(seed),
        participation=participation,
    )
    plan = Plan([0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1], repeats, problem=problem)
    return [environment.play(plan) for _ in range(20)]


@pytest.mark.parametrize("rewards", sorted(REWARDS))
@pytest.mark.parametrize("participation", [1.0, 0.7])
@pytest.mark.parametrize("repeats", [1, 9])
def test_the_same_seed_gives_the_same_feedback(
    rewards: str, participation: float, repeats: int
) -> None:
    first, second = (played(rewards, participation, repeats, seed=0) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        for name in ("totals", "released", "reported"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("repeats", [1, 9])
def test_feedback_does_not_change_when_more_is_played(repeats: int) -> None:
    problem = Problem(n_users=4, n_arms=1, min_group_size=2)
    rng = np.random.default_rng(0)
    environment = make_environment("bernoulli", problem, np.full((4, 1), 0.5), rng=rng)
    plan = Plan([0] * 4, [0, 0, 1, 1], repeats, problem=problem)
    feedbacks = [environment.play(plan) for _ in range(10)]
    kept = [feedback.totals.copy() for feedback in feedbacks]
    environment.play(plan)
    for feedback, totals in zip(feedbacks, kept, strict=True):
        np.testing.assert_array_equal(feedback.totals, totals)
    assert len({tuple(totals) for totals in kept}) > 1


def test_a_group_short_of_reporters_is_withheld_and_the_others_are_not() -> None:
    problem = Problem(n_users=6, n_arms=1, min_group_size=3)
    environment = make_environment(
        "deterministic",
        problem,
        np.full((6, 1), 0.5),
        rng=np.random.default_rng(0),
        participation=[1, 1, 0, 1, 1, 1],
    )
    feedback = environment.play(Plan([0] * 6, [0, 0, 0, 1, 1, 1], 4, problem=problem))
    np.testing.assert_array_equal(feedback.totals, [0.0, 6.0])
    np.testing.assert_array_equal(feedback.released, [0, 4])
    np.testing.assert_array_equal(feedback.reported, [0, 0, 0, 4, 4, 4])


def test_who_does_not_report_leaves_the_total_but_not_the_release() -> None:
    problem = Problem(n_users=3, n_arms=1, min_group_size=2)
    environment = make_environment(
        "deterministic",
        problem,
        [[0.25], [0.5], [1.0]],
        rng=np.random.default_rng(0),
        participation=[1, 0, 1],
    )
    feedback = environment.play(Plan([0] * 3, [0] * 3, 2, problem=problem))
    np.testing.assert_array_equal(feedback.totals, [2.5])
    np.testing.assert_array_equal(feedback.released, [2])
    np.testing.assert_array_equal(feedback.reported, [2, 0, 2])


def test_groups_that_are_short_are_merged_inside_their_arm_and_shard() -> None:
    problem = Problem(n_users=16, n_arms=2, min_group_size=2, n_shards=2)
    reports = [1, 0, 1, 0, 1, 1, 1, 0] * 2
    environment = make_environment(
        "deterministic", problem, np.ones((16, 2)), rng=np.random.default_rng(0),
        participation=reports,
    )  # fmt: skip
    arms = np.array([0, 0, 0, 0, 1, 1, 1, 1] * 2)
    feedback = environment.play(Plan(arms, np.arange(16) // 2, problem=problem))
    assert feedback.plan
    # On arm 0 each group has one reporter; on arm 1 one group is whole and takes the other in.
    np.testing.assert_array_equal(feedback.plan.groups, np.repeat([0, 2, 4, 6], 4))
    np.testing.assert_array_equal(feedback.totals, [2, 0, 3, 0, 2, 0, 3])
    np.testing.assert_array_equal(feedback.released, [1, 0, 1, 0, 1, 0, 1])
    np.testing.assert_array_equal(feedback.reported, reports)
    assert (environment.smallest_group, environment.withheld) == (2, 0)


def test_withholding_is_decided_in_every_round_of_a_repeated_plan() -> None:
    problem = Problem(n_users=2, n_arms=1, min_group_size=2)
    environment = make_environment(
        "deterministic", problem, [[1.0], [1.0]], rng=np.random.default_rng(0), participation=0.5
    )
    # 40,000 rounds need several blocks of draws; 10,000 releases ± 600 is 6.9 deviations.
    feedback = environment.play(Plan([0, 0], [0, 0], 40_000, problem=problem))
    assert abs(int(feedback.released[0]) - 10_000) < 600
    assert feedback.totals[0] == 2 * feedback.released[0]
    np.testing.assert_array_equal(feedback.reported, [feedback.released[0]] * 2)


@pytest.mark.parametrize("participation", [1.0, 0.5])
def test_a_plan_without_groups_releases_nothing_and_draws_nothing(participation: float) -> None:
    problem = Problem(n_users=3, n_arms=2, min_group_size=2)
    rng = np.random.default_rng(0)
    environment = make_environment(
        "bernoulli", problem, np.full((3, 2), 0.5), rng=rng, participation=participation
    )
    before = rng.bit_generator.state
    plan = Plan([0, 1, 0], [-1, -1, -1], 1000, problem=problem)
    feedback = environment.play(plan)
    feedback.check(plan)
    assert not feedback.reported.any()
    assert rng.bit_generator.state == before


def test_a_plan_of_another_problem_is_refused() -> None:
    problem = Problem(n_users=4, n_arms=2, min_group_size=2)
    environment = make_environment(
        "bernoulli", problem, np.full((4, 2), 0.5), rng=np.random.default_rng(0)
    )
    looser = Problem(n_users=4, n_arms=2, min_group_size=1)
    with pytest.raises(InvalidInputError, match=r"must belong .*min_group_size=2.*; got .*size=1"):
        environment.play(Plan([0] * 4, [0, 1, 2, 3], problem=looser))
    equal = Problem(n_users=4, n_arms=2, min_group_size=2)
    assert environment.play(Plan([0] * 4, [0] * 4, problem=equal)).released[0] == 1


def test_more_repeats_than_counts_can_hold_are_refused() -> None:
    problem = Problem(n_users=2, n_arms=1, min_group_size=2)
    environment = make_environment(
        "deterministic", problem, [[0.5], [0.5]], rng=np.random.default_rng(0)
    )
    with pytest.raises(InvalidInputError, match=r"repeats must be less than 2\*\*31 .*2147483648"):
        environment.play(Plan([0, 0], [0, 0], 2**31, problem=problem))
    most = environment.play(Plan([0, 0], [0, 0], 2**31 - 1, problem=problem))
    assert most.totals[0] == 2**31 - 1
