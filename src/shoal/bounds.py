"""The regret bounds of docs/theory.md as functions of a problem: orders of growth, and bounds.

Every ``_upper`` and ``_lower`` leaves out the constant, and the upper bounds (the paper's Õ) also
leave out factors polylogarithmic in N, K, C and T. So a value alone means nothing; ratios of values
tell how regret grows. Every ``_bound`` is a theorem with its constants. ``n_users``, ``n_arms``,
``min_group_size``, ``horizon`` and ``cluster_size`` are the paper's N, K, C, T and U. Shards learn
alone, so a problem's bound is the sum of its shards'.
"""

from math import isfinite, log, log2, sqrt

from shoal.decompositions.beta.search import least_beta
from shoal.errors import InvalidInputError
from shoal.grouping import least_information
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
    size = whole_number("cluster_size", cluster_size, minimum=min_crowd)
    return max(1, -(-problem.n_arms * min_crowd // size))


def decomposition_ratio(n_arms: int, min_crowd: int, cluster_size: int) -> float:
    """Return a bound on the best ratio 1/beta of every U-batched graph, at most 2 − 1/K.

    The decomposition theorem: s + 1 − 1/K with s = crowd/U, for U from a crowd (C+1, or 2C for the
    pooled estimator) to K crowds, and 1 from there on; ``least_beta`` says what holds for K ≤ 3.

    >>> [decomposition_ratio(10, 5, size) for size in (5, 10, 50, 60)]
    [1.9, 1.4, 1.0, 1.0]
    """
    crowd = whole_number("min_crowd", min_crowd)
    size = whole_number("cluster_size", cluster_size, minimum=crowd)
    return float(1 / least_beta(whole_number("n_arms", n_arms), crowd, size))


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


def pooled_elimination_upper(problem: Problem) -> float:
    """Return N sqrt(C K T), the order of pooled elimination's regret where U ≥ 2C.

    >>> problem = Problem(n_users=50, n_arms=5, min_group_size=4, horizon=100_000)
    >>> pooled_elimination_upper(problem) == clustered_lower(problem)
    True
    """
    return problem.n_users * sqrt(problem.min_group_size * problem.n_arms * _horizon(problem))


def pooled_elimination_bound(
    problem: Problem, *, approximation_ratio: float, extra_assignments: float = 0.0
) -> float:
    """Return the bound of pooled elimination's regret with its constants, where U ≥ 2C.

    The decomposition for crowds of 2C has at most ``approximation_ratio``·D plus
    ``extra_assignments``. T must be at least alpha·(25·C·K·log(NKT))², and alpha at most T^0.29.

    >>> problem = Problem(n_users=50, n_arms=5, min_group_size=4, horizon=10**9)
    >>> bound = pooled_elimination_bound(problem, approximation_ratio=1.8)
    >>> round(bound / (50 * sqrt(4 * 5 * 10**9)), 1)
    400.9
    """
    n, k, c, t = problem.shard_size, problem.n_arms, problem.min_group_size, _horizon(problem)
    logarithm, n_batches = log(n * k * t), max(2, round(log2(max(2.0, log2(t)))))
    min_horizon = max(
        approximation_ratio * (25 * c * k * logarithm) ** 2, approximation_ratio ** (1 / 0.29)
    )
    if t < min_horizon:
        raise InvalidInputError(
            f"horizon must be at least {min_horizon:.4g} for this bound; got {t}."
        )
    gamma = 4 * _variance_proxy(problem) * logarithm
    explored = 2 * sqrt(approximation_ratio * t) * (1 + (n_batches - 1) * sqrt(53 * gamma * c * k))
    return problem.n_users * (explored + (n_batches - 1) * extra_assignments + 3 * n_batches)


def pooled_explore_then_commit_upper(problem: Problem) -> float:
    """Return N (C K)^(1/3) T^(2/3), the order of pooled explore-then-commit's regret for N ≥ 2C.

    >>> problem = Problem(n_users=20, n_arms=8, min_group_size=8, horizon=1000)
    >>> round(pooled_explore_then_commit_upper(problem), 6)
    8000.0
    """
    c, k, t = problem.min_group_size, problem.n_arms, _horizon(problem)
    if problem.shard_size < 2 * c:
        raise InvalidInputError(
            f"n_users must be at least 2·min_group_size={2 * c} for this bound; "
            f"got {problem.shard_size}."
        )
    return problem.n_users * float((c * k) ** (1 / 3) * t ** (2 / 3))


def pooled_explore_then_commit_bound(problem: Problem) -> float:
    """Return the bound of pooled explore-then-commit's regret with its constants, for N > C.

    T must be at least 16·K·log(NKT)/(b·sigma), with b the least information of a round.

    >>> problem = Problem(n_users=50, n_arms=5, min_group_size=4, horizon=100_000)
    >>> round(pooled_explore_then_commit_bound(problem) / 50)
    37144
    """
    n, k, t = problem.shard_size, problem.n_arms, _horizon(problem)
    information, proxy = least_information(n, problem.min_group_size), _variance_proxy(problem)
    if information <= 0:
        raise InvalidInputError(
            f"n_users must be more than min_group_size={problem.min_group_size} for this bound; "
            f"got {n}."
        )
    logarithm = log(n * k * t)
    min_horizon = 16 * k * logarithm / (information * sqrt(proxy))
    if t < min_horizon:
        raise InvalidInputError(
            f"horizon must be at least {min_horizon:.4g} for this bound; got {t}."
        )
    noise = 2 * proxy * k * logarithm / information
    return problem.n_users * float(3 * noise ** (1 / 3) * t ** (2 / 3) + k + 2)


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


def without_clusters_lower(problem: Problem) -> float:
    """Return m C (C (K-1) / m)^(1/3) T^(2/3) per shard: Theorem 4 for all N > C ≥ 2 and K ≥ 3.

    Some instances without clusters force it, with m = min(N/C, (K-1)/2), rounded down, at least 1.

    >>> problem = Problem(n_users=20, n_arms=9, min_group_size=15, horizon=1000)
    >>> round(without_clusters_lower(problem), 6)
    7398.636223
    """
    n, k, c, t = problem.shard_size, problem.n_arms, problem.min_group_size, _horizon(problem)
    if not n > c >= 2 or k < 3:
        raise InvalidInputError(
            "n_users must exceed min_group_size, at least 2, and n_arms be at least 3 for this "
            f"bound; got {n}, {c} and {k}."
        )
    n_copies = max(1, min(n // c, (k - 1) // 2))
    order = n_copies * c * (c * (k - 1) / n_copies) ** (1 / 3) * t ** (2 / 3)
    return problem.n_shards * float(order)


def too_few_users_lower(problem: Problem) -> float:
    """Return T per shard, which some instances with N = C force (Theorem 5).

    >>> too_few_users_lower(Problem(n_users=2, n_arms=2, min_group_size=2, horizon=1000))
    1000.0
    """
    _require_users(problem, problem.min_group_size, "min_group_size", 5)
    return problem.n_shards * float(_horizon(problem))


def _variance_proxy(problem: Problem) -> float:
    """Return sigma²: 1/4 for rewards in [0, 1], 1 for other 1-subgaussian ones."""
    return 0.25 if problem.bounded else 1.0


def _horizon(problem: Problem) -> int:
    if problem.horizon is None:
        raise InvalidInputError("horizon must be known for a regret bound; got None.")
    return problem.horizon


def _require_users(problem: Problem, n_users: int, rule: str, theorem: int) -> None:
    if problem.shard_size != n_users:
        raise InvalidInputError(
            f"n_users must be {rule}={n_users} for Theorem {theorem}; got {problem.shard_size}."
        )
