"""What groups can tell at all: the numbers in docs/theory.md, in fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from shoal.grouping import RoundTotals, least_information, regroup
from shoal.policies.paper.grid import batch_ends, default_batches
from shoal.policies.pooled.least_squares import add_totals

Matrix = list[list[Fraction]]


def partitions(
    users: tuple[int, ...], n_groups: int, sizes: list[int]
) -> list[list[tuple[int, ...]]]:
    """Return all ways to choose ordered groups of these sizes."""
    if n_groups == 0:
        return [[]]
    return [
        [group, *rest]
        for group in combinations(users, sizes[0])
        for rest in partitions(tuple(u for u in users if u not in group), n_groups - 1, sizes[1:])
    ]


def mean_information(crowd: int, sizes: list[int]) -> Matrix:
    """Return the exact mean of Σ 1_G 1_G'/|G| over all ways to choose the groups."""
    ways = partitions(tuple(range(crowd)), len(sizes), sizes)
    total = [[Fraction(0)] * crowd for _ in range(crowd)]
    for groups in ways:
        for group in groups:
            for one in group:
                for other in group:
                    total[one][other] += Fraction(1, len(group) * len(ways))
    return total


def eigenvalues(matrix: Matrix) -> tuple[Fraction, Fraction]:
    """Return those of an exchangeable matrix: on the all-ones vector, and on contrasts."""
    diagonal, other = matrix[0][0], matrix[0][1]
    n = len(matrix)
    assert all(matrix[i][j] == (diagonal if i == j else other) for i in range(n) for j in range(n))
    return diagonal + (n - 1) * other, diagonal - other


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("crowd", [3, 4, 5, 6, 7])
def test_a_rounds_least_information_by_enumeration(crowd: int, size: int) -> None:
    if crowd <= size:
        assert least_information(crowd, size) == 0
        return
    n_groups = crowd // size
    sizes = (
        [size] if n_groups == 1 else [len(part) for part in np.array_split(range(crowd), n_groups)]
    )
    on_ones, on_contrasts = eigenvalues(mean_information(crowd, sizes))
    assert float(min(on_ones, on_contrasts)) == pytest.approx(least_information(crowd, size))
    if crowd >= 2 * size:
        assert on_contrasts >= Fraction(1, 3 * size)


def test_information_bounds_for_every_crowd_up_to_300() -> None:
    for size in range(1, 40):
        for crowd in range(2 * size, 300):
            if crowd > 1:
                assert Fraction(crowd // size - 1, crowd - 1) >= Fraction(1, 3 * size)
        for extra in range(1, size):
            least = Fraction(extra, (size + extra) * (size + extra - 1))
            for crowd in range(size + extra, 2 * size):
                assert Fraction(crowd - size, crowd * (crowd - 1)) >= least


@pytest.mark.parametrize(
    ("crowd", "size", "variance"),
    [(3, 2, Fraction(4)), (4, 3, Fraction(9)), (4, 2, Fraction(9, 4)), (5, 4, Fraction(16))],
)
def test_the_best_design_of_a_small_crowd(crowd: int, size: int, variance: Fraction) -> None:
    """Over all ways to group, exchangeable mixtures being the best: the least mean variance.

    The variances of the n−1 contrasts sum to at least (n−1)²/trace, with equality for an
    exchangeable design; the trace of a round on contrasts is Σ (1 − |G|/n).
    """
    traces = []
    for n_groups in range(1, crowd // size + 1):
        for sizes in np.ndindex(*[crowd + 1] * n_groups):
            if min(sizes) >= size and sum(sizes) <= crowd:
                on_ones, on_contrasts = eigenvalues(mean_information(crowd, list(sizes)))
                trace = sum((1 - Fraction(g, crowd) for g in sizes), Fraction(0))
                assert (crowd - 1) * on_contrasts == trace
                assert on_ones + trace == n_groups
                traces.append(trace)
    assert (crowd - 1) ** 2 / max(traces) / crowd == variance
    if crowd < 2 * size:
        assert variance == Fraction((crowd - 1) ** 2, crowd - size)


def test_no_groups_tell_much_more_than_those_of_everyone() -> None:
    """The best trace on contrasts, over all sizes of groups, against (g−1) for random groups."""
    for size in range(1, 8):
        for crowd in range(2 * size, 40):
            n_groups = crowd // size
            # Groups of C are best: each adds 1 − |G|/n.
            best = max(n * (1 - Fraction(size, crowd)) for n in range(1, n_groups + 1))
            assert best == n_groups - Fraction(n_groups * size, crowd)
            assert best >= n_groups - 1
            assert (best == n_groups - 1) == (crowd % size == 0)
            assert best <= Fraction(n_groups**2, n_groups**2 - 1) * (n_groups - 1)
    on_ones, on_contrasts = eigenvalues(mean_information(7, [3, 3]))  # one of seven left out
    assert (on_ones, on_contrasts) == (Fraction(6, 7), (2 - Fraction(6, 7)) / 6)
    assert float(on_contrasts) > least_information(7, 3)


def test_the_inequalities_of_the_bayes_regret() -> None:
    """E[X | X above its (1−p)-quantile] ≤ √(2·log(1/p)), and log(1+x) ≥ x/(1+v) up to x = v."""
    for p in np.geomspace(1e-12, 0.999, 200):
        low, high = -40.0, 40.0
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if 0.5 * math.erfc(middle / math.sqrt(2)) > p else (low, middle)
            )
        mean = math.exp(-low * low / 2) / math.sqrt(2 * math.pi) / p
        assert mean <= math.sqrt(2 * math.log(1 / p)) * (1 + 1e-9)
    for v in (0.01, 1.0, 50.0):
        x = np.linspace(0, v, 1000)
        assert (np.log1p(x) >= x / (1 + v)).all()


def test_the_constants_of_the_lemma_and_of_explore_then_commit() -> None:
    assert math.exp(-0.5) / 0.5**0.5 <= math.exp(-1 / 8)  # matrix Chernoff with delta = 1/2
    # T = 16·K·L/(b·sigma) makes n = (2·sigma²·L/b)^(1/3)·(T/K)^(2/3) equal to 8·L/b.
    for sigma in (0.5, 1.0):
        for bits in (0.01, 0.3, 1.0):
            for log in (5.0, 20.0):
                rounds = (2 * sigma**2 * log / bits) ** (1 / 3) * (16 * log / (bits * sigma)) ** (
                    2 / 3
                )
                assert rounds == pytest.approx(8 * log / bits)
                # Below this T the horizon itself is at most (2/sigma)·X, X without its T^(2/3).
                horizon = 16 * log / (bits * sigma)
                x = (2 * sigma**2 * log / bits) ** (1 / 3)
                assert horizon ** (1 / 3) == pytest.approx(2 / sigma * x)
                assert 2 / sigma <= (3 if sigma == 1.0 else 4)
    for size in range(2, 60):
        for crowd in range(size + 1, 2 * size):
            assert crowd * (crowd - 1) <= size * (size + 1) * (crowd - size)


@pytest.mark.parametrize(("crowd", "size"), [(8, 4), (11, 4), (30, 3), (2, 1), (7, 4), (5, 4)])
def test_least_squares_are_as_good_as_the_lemma_says(crowd: int, size: int) -> None:
    """After R = (8/b)·log(1/p) rounds every variance is at most 2/(b·R).

    With p = 1e-9 a false alarm has probability at most 63·1e-9 in all.
    """
    bits = least_information(crowd, size)
    n_rounds = math.ceil(8 / bits * math.log(1e9))
    rng = np.random.default_rng(crowd)
    information, evidence = np.zeros((1, 1, crowd, crowd)), np.zeros((1, 1, crowd))
    arms, groups = np.zeros(crowd, np.int32), np.empty(crowd, np.int32)
    n_groups = crowd // size
    for _ in range(n_rounds):
        regroup(arms, 1, size, 0, rng.random(crowd), groups)
        reported = (groups >= 0).astype(np.int32)
        totals, released = np.zeros(n_groups), np.ones(n_groups, np.int32)
        add_totals(RoundTotals(arms, groups, totals, released, reported), information, evidence)
    variances = np.linalg.inv(information[0, 0]).diagonal()
    assert variances.max() <= 2 / (bits * n_rounds)


@pytest.mark.parametrize("ratio", [1.0, 1.5, 1.95, 4.0])
@pytest.mark.parametrize("exponent", range(14, 60))
def test_the_grid_is_as_the_proof_has_it(ratio: float, exponent: int) -> None:
    """Step 3 of pooled elimination's proof on the grid that the code plays."""
    horizon = 2**exponent
    assert ratio <= horizon**0.29
    n_batches = default_batches(horizon)
    shortened = int(horizon / ratio)
    first = shortened ** (1 / (2 - 2 ** (1 - n_batches)))
    exact = [first ** (2 - 2.0 ** (1 - b)) for b in range(1, n_batches + 1)]
    ends = batch_ends(shortened, n_batches)
    assert len(ends) == n_batches
    assert first <= 2 * math.sqrt(shortened)
    demands = np.diff(ends, prepend=0)
    for b in range(1, n_batches):
        assert demands[b - 1] >= 0.46 * exact[b - 1]
        assert demands[b] <= first * math.sqrt(exact[b - 1]) + 1e-6
        assert demands[b] >= demands[0]
    committed = horizon * math.sqrt(24 / demands[-2])
    assert committed <= ratio * first * math.sqrt(53)


def test_the_constants_of_pooled_elimination_and_of_the_lower_bound() -> None:
    assert 2 ** (2 * math.sqrt(2) / 3) <= 2
    assert 1 - 0.29 > 2**-0.5
    assert 24 / 0.46 <= 53
    assert 48 * 26 / 25 <= 50 <= 53
    assert 0.5 - 1 / 25 >= 0.46
    # With home and away's own alpha = 9 and rho = 71·K the rounding term is below the main one from
    # T = C·K on; N is at least 2·C·K.
    for size in (1, 2, 30):
        for n_arms in (2, 10, 1000):
            horizon = max(size * n_arms, math.ceil(9 ** (1 / 0.29)))
            gamma = math.log(2 * size * n_arms * n_arms * horizon)
            main = 2 * math.sqrt(9 * horizon) * math.sqrt(53 * gamma * size * n_arms)
            assert 71 * n_arms <= main
    # Theorem 4 for all N, K and C: both costs are equal at the gap, and the constant holds.
    assert (3 / 128) ** (1 / 3) / 12 >= 0.023
    for size in range(2, 100):
        assert size // 2 >= size / 3
        assert size - size // 2 >= size / 2
    for n_arms in range(3, 61):
        for n_blocks in range(1, (n_arms - 1) // 2 + 1):
            per_block = (n_arms - 1) // n_blocks
            assert per_block >= 2
            assert per_block >= Fraction(n_arms - 1, 2 * n_blocks)
            for size in (2, 3, 10):
                gap_cubed = Fraction(3 * size * per_block, 128 * size * n_arms)  # T = C·K
                assert gap_cubed <= Fraction(1, 8)
                gap, horizon = float(gap_cubed) ** (1 / 3), size * n_arms
                seen = size / 4 * per_block * size / (16 * gap**2) / 8
                assert seen == pytest.approx(size * gap * horizon / 12)


def test_with_a_common_part_an_arm_is_the_best_of_few_in_about_half_of_all_draws() -> None:
    """Where the Bayesian proof breaks: 5 arms, the common part varies as much as users do."""
    rng = np.random.default_rng(3)
    n_draws, n_users, n_arms = 2_000, 400, 5
    few = 0
    for _ in range(n_draws):
        means = rng.normal(size=n_arms) + rng.normal(size=(n_users, n_arms))
        few += int((means.argmax(axis=1) == 0).sum() < n_users / (2 * n_arms))
    assert 0.42 < few / n_draws < 0.58
