"""The decomposition theorem of docs/theory.md: every inequality with numbers, in fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb, floor

import numpy as np
import pytest

from shoal.bounds import decomposition_ratio
from shoal.decompositions.beta.proof import prove_beta
from shoal.decompositions.beta.search import least_beta
from shoal.decompositions.demand import batched_graph
from shoal.decompositions.home_away import open_set_stream

ARMS = range(2, 61)


def delta(n_arms: int, k: int) -> Fraction:
    return Fraction(1, k) - Fraction(1, n_arms)


def kappa(n_arms: int) -> Fraction:
    return Fraction(n_arms, 2 * n_arms - 1)


def sizes(n_arms: int) -> dict[int, Fraction]:
    """The sizes of an open set, with their probabilities: mean K²/(2K−1)."""
    mean = Fraction(n_arms**2, 2 * n_arms - 1)
    low = floor(mean)
    return {low: low + 1 - mean, low + 1: mean - low}


def all_closed(n_arms: int, k: int) -> Fraction:
    """q(k): the probability that k given arms are all closed."""
    return sum(
        (p * Fraction(comb(n_arms - k, m), comb(n_arms, m)) for m, p in sizes(n_arms).items()),
        Fraction(0),
    )


def hyperplane_closed(n_arms: int, k: int) -> Fraction:
    """q(k) of the method's sets: arms on random vectors, hyperplanes or their complements."""
    size = 1 << n_arms.bit_length()
    turned = Fraction(size, 2) - kappa(n_arms) * (size - 1)
    assert 0 <= turned < 1
    total = comb(size - 1, k)
    return (1 - turned) * Fraction(comb(size // 2 - 1, k), total) + turned * Fraction(
        comb(size // 2, k), total
    )


@pytest.mark.parametrize("n_arms", ARMS)
def test_home_and_away_gives_every_user_its_share(n_arms: int) -> None:
    k_over = kappa(n_arms)
    for closed in (all_closed, hyperplane_closed):
        assert closed(n_arms, 1) == 1 - k_over == k_over * delta(n_arms, 1)
        assert closed(n_arms, n_arms) == 0
        for k in range(2, n_arms + 1):
            assert closed(n_arms, k) <= k_over * delta(n_arms, k)
            assert (1 - k_over - closed(n_arms, k)) / (k - 1) >= k_over / k


@pytest.mark.parametrize("n_arms", [k for k in ARMS if k >= 3])
def test_each_step_of_the_proof_holds(n_arms: int) -> None:
    variance = sum(
        (p * (m - Fraction(n_arms**2, 2 * n_arms - 1)) ** 2 for m, p in sizes(n_arms).items()),
        Fraction(0),
    )
    assert variance <= Fraction(1, 4)
    slack = kappa(n_arms) * delta(n_arms, 2) - all_closed(n_arms, 2)
    first = Fraction(n_arms, 2 * (2 * n_arms - 1) ** 2) - Fraction(1, 4 * n_arms * (n_arms - 1))
    second = Fraction(n_arms - 3, 8 * n_arms * (n_arms - 1))
    assert slack >= first >= second >= 0
    for m in sizes(n_arms):
        assert 3 * m >= n_arms
        for k in range(2, n_arms - 1):
            one, more = comb(n_arms - k, m), comb(n_arms - k - 1, m)
            ratio = delta(n_arms, k + 1) / delta(n_arms, k)
            assert ratio == Fraction(k * (n_arms - k - 1), (k + 1) * (n_arms - k))
            assert more <= ratio * one


@pytest.mark.parametrize("n_arms", ARMS)
def test_the_hyperplanes_steps_hold(n_arms: int) -> None:
    size = 1 << n_arms.bit_length()
    turned = Fraction(size, 2) - kappa(n_arms) * (size - 1)
    points = size - 1
    for m in (size // 2, size // 2 - 1) if turned else (size // 2,):
        for k in range(2, n_arms - 1):
            assert m * (k + 1) * (n_arms - k) >= n_arms * (points - k)
    separated = Fraction(size // 4, points)
    assert hyperplane_closed(n_arms, 2) == 1 - kappa(n_arms) - separated


@pytest.mark.parametrize("n_arms", [k for k in ARMS if k >= 4])
def test_larger_clusters_need_fewer_assignments(n_arms: int) -> None:
    """(*) for every share s from 1/K to 1: the left side is concave in x = 1 − s."""
    u = Fraction(n_arms, n_arms - 1)
    for k in range(2, n_arms + 1):
        now, before = all_closed(n_arms, k), all_closed(n_arms, k - 1)
        rise = before - now
        peak = (rise - u * now) / (2 * u * rise) if rise else Fraction(0)
        x = min(max(peak, Fraction(0)), 1 - Fraction(1, n_arms))
        assert (1 - u * x) * (now + x * rise) <= kappa(n_arms) * delta(n_arms, k)


def least_served(s: Fraction, closed: list[Fraction], k: int) -> Fraction:
    """The largest beta for a user with k arms, as in "Larger clusters".

    ``closed`` has Q(0), …, Q(K). The user stays at home with probability at least s where it is
    open; at home it needs beta/k, away beta·(k−1)/k.
    """
    is_open = 1 - closed[1]
    if k == 1:
        return is_open
    only_home = closed[k - 1] - closed[k]
    away = closed[1] - closed[k] + (1 - s) * (is_open - only_home)
    total = 1 - closed[k]
    home = total - away
    if home >= away / (k - 1):
        return away * k / (k - 1)
    return min(k * is_open, total)  # by staying more, up to always


@pytest.mark.parametrize("n_arms", [k for k in ARMS if k >= 4])
def test_larger_clusters_by_the_construction_itself(n_arms: int) -> None:
    """Home and away shares for every s = c/U on a grid: at least 1/(s + (K−1)/K) for every k."""
    now = [Fraction(1)] + [all_closed(n_arms, k) for k in range(1, n_arms + 1)]
    for step in range(13):
        s = Fraction(1, n_arms) + (1 - Fraction(1, n_arms)) * Fraction(step, 12)
        beta = 1 / (s + 1 - Fraction(1, n_arms))
        some_closed = (1 - beta) / (1 - kappa(n_arms))  # 1 − lambda
        assert 0 <= some_closed <= 1
        closed = [Fraction(1)] + [some_closed * q for q in now[1:]]
        for k in range(1, n_arms + 1):
            assert least_served(s, closed, k) >= beta


def test_three_arms_for_every_share() -> None:
    for denominator in range(1, 61):
        for crowd in range(-(-denominator // 3), denominator + 1):
            s = Fraction(crowd, denominator)
            x = 1 - s
            one = max(Fraction(0), (1 - 6 * x) / (5 - 6 * x))
            beta = 1 / (s + Fraction(2, 3)) if one == 0 else (3 - 2 * x) / (5 - 6 * x)
            two = 3 * (1 - beta) - 2 * one
            assert min(one, two, 1 - one - two) >= 0
            closed = [Fraction(1), (2 * one + two) / 3, one / 3, Fraction(0)]
            assert min(least_served(s, closed, k) for k in (1, 2, 3)) >= beta
            assert least_beta(3, crowd, denominator) == beta
            assert 1 / beta - (s + Fraction(2, 3)) <= Fraction(5, 1000)


def test_the_bounds_are_less_than_one_over_u_apart() -> None:
    for crowd in range(2, 40):
        for cluster in range(crowd, 4 * crowd):
            gap = Fraction(crowd, cluster) - Fraction(crowd - 1, cluster - 1)
            assert 0 <= gap < Fraction(1, cluster)


@pytest.mark.parametrize("n_arms", ARMS)
def test_the_method_as_it_is_needs_seven_times_the_demand_at_most(n_arms: int) -> None:
    """One of the two bounds on away arms is enough at every stay share; and the chance of B."""
    z = 1 - Fraction(1, n_arms)
    for step in range(401):
        y = z * Fraction(step, 400)
        s, some_closed = y + Fraction(1, n_arms), y / (1 + y) * Fraction(2 * n_arms - 1, n_arms - 1)
        # 1 − lambda, as in the code.
        is_open = 1 / (s + z)
        assert some_closed == (1 - is_open) / (1 - kappa(n_arms))
        rest = 1 - s - Fraction(3, 4) * some_closed
        assert 7 * some_closed >= 4 * z or 7 * rest >= 1
    size = 1 << n_arms.bit_length()
    assert Fraction(size - 1, size // 4) >= 3
    assert kappa(n_arms) >= Fraction(1, 2)
    turned = Fraction(size, 2) - kappa(n_arms) * (size - 1)
    assert (turned * (2 * n_arms - 1)).denominator == 1


def test_the_excess_at_two_arms_is_paid_for() -> None:
    for n in range(5, 61):
        assert (n - 2) * (n - 3) * (2 * n - 1) >= n * n
        assert (n - 2) * (n - 3) >= n


@pytest.mark.parametrize("n_arms", [2, 3, 4, 5])
def test_the_construction_plays_what_the_formulas_say(n_arms: int) -> None:
    """All sets, all active sets, one by one: home and each other arm."""
    for k in range(1, n_arms + 1):
        for active in combinations(range(n_arms), k):
            home = active[0]
            plays = dict.fromkeys(active, Fraction(0))
            for m, p in sizes(n_arms).items():
                for open_arms in combinations(range(n_arms), m):
                    weight = p / comb(n_arms, m)
                    options = [home] if home in open_arms else [a for a in active if a in open_arms]
                    for arm in options:
                        plays[arm] += weight / len(options)
            assert min(plays.values()) >= kappa(n_arms) / k
            if k == n_arms > 1:
                assert {plays[arm] for arm in active[1:]} == {kappa(n_arms) / k}


def test_blocks_of_sets_treat_all_pairs_of_arms_alike() -> None:
    for n_arms in (2, 3, 5, 8, 13, 40):
        stream = open_set_stream(n_arms, 0.0, np.random.default_rng(0))
        shares = []
        for _ in range(40):
            sets = next(stream)
            shares.append(sets.mean(axis=0))
            apart = (sets[:, :, None] & ~sets[:, None, :]).sum(axis=0)
            off_diagonal = apart[~np.eye(n_arms, dtype=bool)]
            assert (off_diagonal == (1 << n_arms.bit_length()) // 4).all()
            assert sets.any(axis=1).all()
        assert np.mean(shares) == pytest.approx(float(kappa(n_arms)), abs=1 / 40)


def tight_example(n_arms: int, crowd: int, cluster: int) -> np.ndarray:
    decided = np.eye(n_arms, dtype=bool)
    thin = np.vstack([decided[:1], np.ones((cluster - 1, n_arms), bool)])
    return np.vstack([thin, np.repeat(decided[1:], cluster, axis=0)])


@pytest.mark.parametrize(
    ("n_arms", "crowd", "cluster"),
    [(2, 2, 2), (2, 4, 5), (3, 2, 2), (3, 3, 3), (3, 3, 4), (4, 2, 2), (4, 3, 5), (5, 2, 2)],
)
def test_the_tight_example_has_the_stated_beta(n_arms: int, crowd: int, cluster: int) -> None:
    graph, _ = batched_graph(tight_example(n_arms, crowd, cluster), crowd)
    share = max(Fraction(crowd - 1, cluster - 1), Fraction(1, n_arms))
    proof = prove_beta(graph)
    assert proof.tight
    assert proof.lower == 1 / (share + 1 - Fraction(1, n_arms))
    assert float(proof.lower) >= 1 / decomposition_ratio(n_arms, crowd, cluster) - 1e-9


def test_two_arms_never_need_more_than_the_tight_example() -> None:
    """All graphs of two arms with U = 2 to 5 and up to 3 users more than need be."""
    for crowd in range(2, 5):
        for cluster in range(crowd, 6):
            least = 1 / (max(Fraction(crowd - 1, cluster - 1), Fraction(1, 2)) + Fraction(1, 2))
            betas = []
            for zero in range(cluster + 1):
                for one in range(cluster + 1):
                    for both in range(2 * cluster - zero - one, 2 * cluster - zero - one + 3):
                        if zero + both >= cluster and one + both >= cluster:
                            rows = [[True, False]] * zero + [[False, True]] * one
                            active = np.array(rows + [[True, True]] * both)
                            betas.append(prove_beta(batched_graph(active, crowd)[0]).lower)
            assert min(betas) == least
