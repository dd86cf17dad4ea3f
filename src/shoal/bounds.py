"""The paper's regret bounds as functions of a problem: orders of growth, not predictions.

Every function leaves out the constant, and the upper bounds (the paper's Õ) also leave out factors
polylogarithmic in N, K, C and T. So a value alone means nothing; ratios of values tell how regret
grows. ``n_users``, ``n_arms``, ``min_group_size``, ``horizon`` and ``cluster_size`` are the paper's
N, K, C, T and U. Shards learn alone, so a problem's bound is the sum of its shards'.
"""

from math import isfinite, sqrt

from shoal.errors import InvalidInputError
from shoal.model import Problem
from shoal.model.numbers import whole_number


def approximation_ratio(problem: Problem, cluster_size: int) -> int:
    """Return alpha(C, U) = max(1, ceil(K (C + 1) / U)) of the decompositions in Section 3.4.2.

    Every arm is the best arm of at least ``cluster_size`` users of a shard, more than C.

    >>> problem = Problem(n_users=50, n_arms=5, min_group_size=4)
    >>> [approximation_ratio(problem, cluster_size) for cluster_size in (5, 10, 25)]
    [5, 3, 1]
    """
    min_crowd = problem.min_group_size + 1
    size = whole_number("cluster_size", cluster_size, least=min_crowd)
    return max(1, -(-problem.n_arms * min_crowd // size))


def batched_bandit_upper(problem: Problem) -> float:
    """Return sqrt(K T), the order of one user's regret in each batch of BaSE (Lemma 1).

    >>> batched_bandit_upper(Problem(n_users=50, n_arms=4, min_group_size=4, horizon=10_000))
    200.0
    """
    return sqrt(problem.n_arms * _horizon(problem))


def batched_elimination_upper(problem: Problem, *, approximation_ratio: float) -> float:
    """Return N C sqrt(alpha K T), the order of Algorithm 1's regret (Theorem 1).

    ``approximation_ratio`` is the decomposition's alpha, at least 1.

    >>> problem = Problem(n_users=50, n_arms=5, min_group_size=4, horizon=100_000)
    >>> greedy = batched_elimination_upper(problem, approximation_ratio=problem.n_arms)
    >>> lp = batched_elimination_upper(problem, approximation_ratio=1)
    >>> round(greedy / lp, 3)
    2.236
    """
    if not (isfinite(approximation_ratio) and approximation_ratio >= 1.0):
        raise InvalidInputError(
            f"approximation_ratio must be finite and at least 1; got {approximation_ratio}."
        )
    rounds = approximation_ratio * problem.n_arms * _horizon(problem)
    return problem.n_users * (problem.min_group_size * sqrt(rounds))


def explore_then_commit_upper(problem: Problem) -> float:
    """Return N C^(2/3) K^(1/3) T^(2/3), the order of Algorithm 2's regret (Theorem 2).

    >>> problem = Problem(n_users=10, n_arms=8, min_group_size=8, horizon=1000)
    >>> round(explore_then_commit_upper(problem), 6)
    8000.0
    """
    if problem.shard_size <= problem.min_group_size:
        raise InvalidInputError(
            f"n_users must be more than min_group_size={problem.min_group_size} for Theorem 2; "
            f"got {problem.shard_size}."
        )
    c, k, t = problem.min_group_size, problem.n_arms, _horizon(problem)
    return problem.n_users * float(c ** (2 / 3) * k ** (1 / 3) * t ** (2 / 3))


def clustered_lower(problem: Problem) -> float:
    """Return N sqrt(C K T), below which no algorithm's regret grows (Theorem 3).

    It holds even where every arm is the best arm of at least K (C + 1) users.

    >>> problem = Problem(n_users=50, n_arms=5, min_group_size=4, horizon=100_000)
    >>> upper = batched_elimination_upper(problem, approximation_ratio=1)
    >>> round(upper / clustered_lower(problem), 6)  # the gap of sqrt(C) that the paper leaves
    2.0
    """
    return problem.n_users * sqrt(problem.min_group_size * problem.n_arms * _horizon(problem))


def no_clusters_lower(problem: Problem) -> float:
    """Return T^(2/3) per shard, which some instances with N = C + 1 force (Theorem 4).

    >>> problem = Problem(n_users=3, n_arms=3, min_group_size=2, horizon=1000)
    >>> round(no_clusters_lower(problem), 6)
    100.0
    """
    _require_users(problem, problem.min_group_size + 1, "min_group_size+1", 4)
    return problem.n_shards * float(_horizon(problem) ** (2 / 3))


def too_few_users_lower(problem: Problem) -> float:
    """Return T per shard, which some instances with N = C force (Theorem 5).

    >>> too_few_users_lower(Problem(n_users=2, n_arms=2, min_group_size=2, horizon=1000))
    1000.0
    """
    _require_users(problem, problem.min_group_size, "min_group_size", 5)
    return problem.n_shards * float(_horizon(problem))


def _horizon(problem: Problem) -> int:
    if problem.horizon is None:
        raise InvalidInputError("horizon must be known for a regret bound; got None.")
    return problem.horizon


def _require_users(problem: Problem, n_users: int, rule: str, theorem: int) -> None:
    if problem.shard_size != n_users:
        raise InvalidInputError(
            f"n_users must be {rule}={n_users} for Theorem {theorem}; got {problem.shard_size}."
        )
