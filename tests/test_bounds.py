from __future__ import annotations

from collections.abc import Callable
from math import ceil, log, log2

import pytest

from shoal import bounds
from shoal.errors import InvalidInputError
from shoal.model import Problem

N, K, C, T = 60, 5, 4, 100_000
PROBLEM = Problem(n_users=N, n_arms=K, min_group_size=C, horizon=T)


@pytest.mark.parametrize("u", [5, 6, 7, 12, 24, 25, 26, 60])
def test_approximation_ratio_is_the_papers_alpha(u: int) -> None:
    assert bounds.approximation_ratio(PROBLEM, u) == max(1, ceil(K * (C + 1) / u))


def test_approximation_ratio_needs_clusters_above_min_group_size() -> None:
    with pytest.raises(InvalidInputError, match=r"cluster_size must be .* at least 5; got 4"):
        bounds.approximation_ratio(PROBLEM, 4)


@pytest.mark.parametrize("alpha", [1, 1.5, 5])
def test_theorem_1(alpha: float) -> None:
    bound = bounds.batched_elimination_upper(PROBLEM, approximation_ratio=alpha)
    assert bound == pytest.approx(N * C * (alpha * K * T) ** 0.5)


@pytest.mark.parametrize("alpha", [0.9, float("nan"), float("inf")])
def test_theorem_1_needs_a_ratio_of_at_least_1(alpha: float) -> None:
    with pytest.raises(InvalidInputError, match="approximation_ratio must be finite and at least"):
        bounds.batched_elimination_upper(PROBLEM, approximation_ratio=alpha)


def test_theorem_2() -> None:
    literal = N * C ** (2 / 3) * K ** (1 / 3) * T ** (2 / 3)
    assert bounds.explore_then_commit_upper(PROBLEM) == pytest.approx(literal)


def test_theorem_2_needs_more_users_than_min_group_size() -> None:
    with pytest.raises(InvalidInputError, match="n_users must be more than min_group_size=2"):
        bounds.explore_then_commit_upper(Problem(4, 2, 2, horizon=10, n_shards=2))


def test_theorem_3() -> None:
    assert bounds.clustered_lower(PROBLEM) == pytest.approx(N * (C * K * T) ** 0.5)


def test_theorem_4_for_one_more_user_than_min_group_size() -> None:
    assert bounds.no_clusters_lower(Problem(3, 3, 2, horizon=T)) == pytest.approx(T ** (2 / 3))
    with pytest.raises(InvalidInputError, match=r"n_users must be min_group_size\+1=5 .*; got 60"):
        bounds.no_clusters_lower(PROBLEM)


def test_theorem_5_for_as_many_users_as_min_group_size() -> None:
    assert bounds.too_few_users_lower(Problem(2, 2, 2, horizon=T)) == T
    with pytest.raises(InvalidInputError, match=r"n_users must be min_group_size=4 .*; got 60"):
        bounds.too_few_users_lower(PROBLEM)


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize(("alpha", "extra"), [(1.0, 0.0), (1.8, 301.0)])
def test_pooled_elimination_with_its_constants(bounded: bool, alpha: float, extra: float) -> None:
    t = 10**9
    problem = Problem(N, K, C, horizon=t, bounded=bounded)
    gamma = 4 * (0.25 if bounded else 1.0) * log(N * K * t)
    batches = round(log2(log2(t)))
    explored = 2 * (alpha * t) ** 0.5 * (1 + (batches - 1) * (53 * gamma * C * K) ** 0.5)
    literal = N * (explored + (batches - 1) * extra + 3 * batches)
    bound = bounds.pooled_elimination_bound(
        problem, approximation_ratio=alpha, extra_assignments=extra
    )
    assert bound == pytest.approx(literal)


@pytest.mark.parametrize(
    ("users", "arms", "size", "horizon", "alpha"),
    [(N, K, C, 10**7, 1.8), (4, 2, 1, 10**10, 1000.0)],  # too short; a ratio above T^0.29
)
def test_pooled_elimination_needs_a_long_horizon(
    users: int, arms: int, size: int, horizon: int, alpha: float
) -> None:
    problem = Problem(users, arms, size, horizon=horizon)
    with pytest.raises(InvalidInputError, match="horizon must be at least"):
        bounds.pooled_elimination_bound(problem, approximation_ratio=alpha)


def test_orders_of_the_pooled_bounds() -> None:
    assert bounds.pooled_elimination_upper(PROBLEM) == pytest.approx(N * (C * K * T) ** 0.5)
    order = N * (C * K) ** (1 / 3) * T ** (2 / 3)
    assert bounds.pooled_explore_then_commit_upper(PROBLEM) == pytest.approx(order)


@pytest.mark.parametrize(
    ("users", "arms", "size", "blocks"), [(5, 3, 4, 1), (60, 5, 4, 2), (9, 9, 4, 2), (12, 9, 3, 4)]
)
def test_theorem_4_for_all_sizes(users: int, arms: int, size: int, blocks: int) -> None:
    problem = Problem(users, arms, size, horizon=T)
    literal = blocks * size * (size * (arms - 1) / blocks) ** (1 / 3) * T ** (2 / 3)
    assert bounds.without_clusters_lower(problem) == pytest.approx(literal)


@pytest.mark.parametrize(
    ("arms", "crowd", "cluster", "ratio"),
    [
        (1, 5, 5, 1.0), (2, 5, 5, 1.5), (2, 5, 9, 1.0), (2, 5, 8, 4 / 7 + 0.5), (3, 5, 5, 5 / 3),
        (3, 9, 10, 11 / 7), (3, 5, 6, 1.5), (4, 5, 5, 1.75), (4, 5, 10, 1.25), (4, 5, 20, 1.0),
        (4, 5, 99, 1.0),
    ],
)  # fmt: skip
def test_decomposition_ratio(arms: int, crowd: int, cluster: int, ratio: float) -> None:
    assert bounds.decomposition_ratio(arms, crowd, cluster) == pytest.approx(ratio)


def test_lemma_1() -> None:
    assert bounds.batched_bandit_upper(PROBLEM) == pytest.approx((K * T) ** 0.5)


def test_a_bound_is_the_sum_over_shards() -> None:
    one = Problem(n_users=5, n_arms=K, min_group_size=C, horizon=T)
    six = Problem(n_users=30, n_arms=K, min_group_size=C, horizon=T, n_shards=6)
    for bound in (
        bounds.explore_then_commit_upper,
        bounds.clustered_lower,
        bounds.no_clusters_lower,
    ):
        assert bound(six) == pytest.approx(6 * bound(one))
    four = Problem(n_users=8, n_arms=2, min_group_size=2, horizon=T, n_shards=4)
    assert bounds.too_few_users_lower(four) == 4 * T
    assert bounds.batched_elimination_upper(six, approximation_ratio=2) == pytest.approx(
        6 * bounds.batched_elimination_upper(one, approximation_ratio=2)
    )


@pytest.mark.parametrize(
    ("bound", "n_users"),
    [
        (bounds.batched_bandit_upper, 3),
        (bounds.explore_then_commit_upper, 3),
        (bounds.clustered_lower, 3),
        (bounds.no_clusters_lower, 3),
        (bounds.too_few_users_lower, 2),
        (lambda problem: bounds.batched_elimination_upper(problem, approximation_ratio=1), 3),
    ],
)
def test_a_problem_without_a_horizon_is_refused(
    bound: Callable[[Problem], float], n_users: int
) -> None:
    with pytest.raises(InvalidInputError, match=r"horizon must be known .*; got None"):
        bound(Problem(n_users=n_users, n_arms=3, min_group_size=2))
