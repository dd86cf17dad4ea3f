"""The learner for large populations: what it decides, how it groups, and how well it plays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from shoal.arrays import FloatArray, IntArray
from shoal.errors import InvalidInputError
from shoal.experiments import simulate
from shoal.grouping.random_groups import cut_crowds, draw
from shoal.grouping.sizes import group_size
from shoal.instances import clustered, linear, uniform
from shoal.model import Problem
from shoal.model.merging import merge_short
from shoal.policies.contract import CHECKS, Arena
from shoal.policies.shoal.population.belief import Decision, PopulationBelief
from shoal.policies.shoal.population.lookahead import (
    BLOCK_HALVINGS,
    BLOCK_SHARES,
    NO_ASSIGNMENTS,
    Explorers,
    Schedule,
    decide,
)
from shoal.policies.shoal.population.panel import best_panel_share, expected_best
from shoal.policies.shoal.population.policy import PopulationPolicy
from shoal.policies.shoal.population.posterior import Evidence, Prior

SEED = np.uint64(2**63 + 12345)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_population_keeps_the_contract(check: Callable[..., None]) -> None:
    check(PopulationPolicy)


def share(means: FloatArray, min_group_size: int, horizon: int, **options: Any) -> float:
    """Return the regret as a share of random play's."""
    random_play = float((means.max(axis=1) - means.mean(axis=1)).sum()) * horizon
    run = simulate(
        PopulationPolicy, means, min_group_size=min_group_size, horizon=horizon, **options
    )
    return run.regret / random_play


def test_clustered_tastes_are_found() -> None:
    # 0.20 and 0.30; the best single arm in hindsight has 0.52 and 0.62.
    for seed in (1, 2):
        means = clustered(1000, 6, rng=np.random.default_rng(seed), n_clusters=3, rate=0.2)
        assert share(means, 10, 300) < 0.45


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({}, 0.2),  # 0.09 to 0.14 over five draws
        ({"participation": 0.7}, 0.32),  # 0.17 to 0.23
        ({"rewards": "gaussian"}, 0.5),  # 0.30 to 0.35
        ({"rewards": "deterministic"}, 0.1),  # 0.04 to 0.05
        ({"options": {"drift": 1e-4}}, 0.2),  # 0.11 to 0.15
    ],
)
def test_linear_tastes_are_found(options: dict[str, Any], most: float) -> None:
    means = linear(600, 5, rng=np.random.default_rng(0), dimension=2)
    assert share(means, 5, 300, **options) < most


def test_users_without_any_structure_are_learnt_one_by_one() -> None:
    # 0.12 to 0.15 over five draws.
    assert share(uniform(600, 4, rng=np.random.default_rng(0)), 4, 400) < 0.22


def test_users_who_are_all_alike_share_their_best_arm() -> None:
    # 0.01 to 0.03 over five draws.
    means = np.tile(uniform(1, 6, rng=np.random.default_rng(0)), (600, 1))
    assert share(means, 10, 300) < 0.06


def test_shards_learn_alone() -> None:
    means = np.stack([linear(300, 4, rng=np.random.default_rng(i), dimension=2) for i in range(2)])
    run = simulate(PopulationPolicy, means, min_group_size=4, horizon=200)
    random_play = (means.max(axis=2) - means.mean(axis=2)).sum(axis=1) * 200
    assert (run.curves[:, -1] / random_play < 0.4).all()


def test_a_user_takes_no_more_than_200_bytes() -> None:
    # More users than the prior is learnt from, too.
    problem = Problem(n_users=6000, n_arms=10, min_group_size=20, horizon=100)
    policy, arena = PopulationPolicy(problem, rng=np.random.default_rng(0)), Arena(problem)
    for _ in range(5):
        policy.tell(arena.play(policy.ask()))
    policy.ask()
    assert sum(array.nbytes for array in arrays(policy.state())) <= 200 * 6000


def test_state_keeps_who_is_in_the_panel() -> None:
    # The contract's shards are too small for a panel.
    problem = Problem(n_users=600, n_arms=3, min_group_size=4, horizon=400)
    policy, arena = PopulationPolicy(problem, rng=np.random.default_rng(0)), Arena(problem)
    for _ in range(8):
        policy.tell(arena.play(policy.ask()))
    assert policy.state()["shards"][0]["panel_share"] * 600 > 4 * 3
    other = PopulationPolicy(problem, rng=np.random.default_rng(1))
    other.restore(policy.state())
    for _ in range(8):
        plan = policy.ask()
        assert np.array_equal(plan.arms, other.ask().arms)
        assert np.array_equal(plan.groups, other.ask().groups)
        feedback = arena.play(plan)
        policy.tell(feedback)
        other.tell(feedback)


def test_panel_is_paid_for_by_what_may_still_be_found() -> None:
    belief = PopulationBelief(100, 5, 10)
    belief.means = np.array([0.2, 0.25, 0.3, 0.35, 0.4])
    sizes = {}
    for hidden in (1e-8, 1e-3, 1e-2):
        belief.hidden = np.full(5, hidden)
        for others in (0.4, 0.6):
            rng = np.random.default_rng(0)
            sizes[hidden, others] = best_panel_share(belief, 10, 500.0, others, rng=rng)
    assert sizes[1e-8, 0.4] < 1e-3
    assert sizes[1e-8, 0.4] < sizes[1e-3, 0.4] < sizes[1e-2, 0.4] <= 0.5
    # A panellist loses 0.1 where others earn 0.4, and 0.3 where they earn 0.6.
    assert sizes[1e-3, 0.6] == pytest.approx(sizes[1e-3, 0.4] / 3)


def arrays(state: Any) -> Iterator[NDArray[Any]]:
    """Yield every array in a state."""
    if isinstance(state, np.ndarray):
        yield state
    elif isinstance(state, dict | list):
        for part in state.values() if isinstance(state, dict) else state:
            yield from arrays(part)


def test_horizon_may_be_unknown() -> None:
    problem = Problem(n_users=300, n_arms=4, min_group_size=5)
    policy, arena = PopulationPolicy(problem, rng=np.random.default_rng(0)), Arena(problem)
    for _ in range(150):
        plan = policy.ask()
        policy.tell(arena.play(plan))
    lost = arena.means.max(axis=1) - arena.means[np.arange(300), plan.arms]
    assert lost.mean() < 0.5 * (arena.means.max(axis=1) - arena.means.mean(axis=1)).mean()


def test_drift_follows_a_world_that_turns_over() -> None:
    problem = Problem(n_users=400, n_arms=3, min_group_size=5, horizon=600)
    earned = []
    for drift in (0.0, 1e-3):
        policy = PopulationPolicy(problem, rng=np.random.default_rng(0), drift=drift)
        arena = Arena(problem)
        late = 0.0
        for t in range(600):
            if t == 300:
                arena.means = 1.0 - arena.means
            plan = policy.ask()
            policy.tell(arena.play(plan))
            late += arena.means[np.arange(400), plan.arms].mean() if t >= 400 else 0.0
        earned.append(late / 200)
    assert earned[1] > earned[0] + 0.05


@pytest.mark.parametrize("drift", [-1e-3, math.inf, math.nan, "0"])
def test_drift_must_be_a_number_of_at_least_0(drift: Any) -> None:
    problem = Problem(n_users=30, n_arms=3, min_group_size=5)
    with pytest.raises(InvalidInputError, match="drift must be a number of at least 0; got"):
        PopulationPolicy(problem, rng=np.random.default_rng(0), drift=drift)


def test_users_only_play_what_they_may() -> None:
    problem = Problem(n_users=200, n_arms=4, min_group_size=5, n_shards=2)
    policy, arena = PopulationPolicy(problem, rng=np.random.default_rng(0)), Arena(problem)
    rng = np.random.default_rng(1)
    for _ in range(12):
        eligible = rng.random((200, 4)) < 0.6
        eligible[:, 3] = False  # retired
        eligible[:20] = False  # gone, or not there yet
        policy.allow(eligible)
        for _ in range(5):
            plan = policy.ask()
            free = eligible.any(axis=1)
            assert eligible[free, plan.arms[free]].all()
            assert (plan.groups[~free] == -1).all()
            assert plan.n_groups > 0
            policy.tell(arena.play(plan))
    policy.allow(np.zeros((200, 4), bool))
    plan = policy.ask()
    assert plan.n_groups == 0
    policy.tell(arena.play(plan))


@pytest.mark.parametrize("eligible", [np.ones((30, 2), bool), np.ones((30, 3))])
def test_eligibility_must_be_truth_values_for_everyone(eligible: Any) -> None:
    policy = PopulationPolicy(
        Problem(n_users=30, n_arms=3, min_group_size=5), rng=np.random.default_rng(0)
    )
    with pytest.raises(InvalidInputError, match=r"eligible must be truth values of shape \(30, 3"):
        policy.allow(eligible)


def test_asking_leaves_what_may_be_played_to_the_caller() -> None:
    policy = PopulationPolicy(
        Problem(n_users=30, n_arms=3, min_group_size=5), rng=np.random.default_rng(0)
    )
    eligible = np.ones((30, 3), bool)
    policy.allow(eligible)
    eligible[:] = False
    assert policy.ask().n_groups > 0


def test_decision_is_the_best_block_of_the_literal_formula() -> None:
    rng = np.random.default_rng(5)
    n_users, n_arms, left = 300, 5, 100.0
    prior = Prior(rng.uniform(0.2, 0.4, n_arms), rng.normal(0, 0.1, (n_arms, 2)), np.full(5, 0.01))
    precision = rng.gamma(0.5, 20.0, (n_users, n_arms)).astype(np.float32)
    value = (precision * rng.uniform(0.1, 0.6, (n_users, n_arms))).astype(np.float32)
    allowed = rng.random((n_users, n_arms)) < 0.8
    allowed[:, 0] = True
    arms = np.full(n_users, -1, np.int32)
    predicted, variances = np.zeros((2, n_users), np.float32)
    noise = np.full(n_arms, 8.0)
    explorers = Explorers(np.zeros(n_users, np.float32), 0.0, NO_ASSIGNMENTS)
    decide(
        prior, Evidence(precision, value), allowed, explorers, noise, Schedule(left, 0, 1), SEED,
        Decision(arms, predicted, variances),
    )  # fmt: skip
    before = np.linalg.inv(prior.factors @ prior.factors.T + np.diag(prior.specific))
    surprising = 0
    for user in range(n_users):
        s = np.linalg.inv(before + np.diag(precision[user]))
        m = s @ (before @ prior.means + value[user])
        able: list[int] = np.flatnonzero(allowed[user]).tolist()
        best = able[int(m[able].argmax())]
        values: dict[int, float] = {}
        for arm in able:
            b = prior.means[arm]
            for block in np.minimum(
                BLOCK_SHARES * left, BLOCK_HALVINGS * 8.0 * b * (1 - b) / s[arm, arm]
            ):
                deviation = np.abs(s[:, arm] - s[best, arm])
                deviation = deviation / math.sqrt(s[arm, arm] + 8.0 * b * (1 - b) / block)
                gains = [excess(m[best] - m[o], deviation[o]) for o in able if o != best]
                worth = (left - block) * max(gains, default=0.0) - block * (m[best] - m[arm])
                values[arm] = max(values.get(arm, -math.inf), worth)
        # Interpolating in the table costs a little: near ties may go either way.
        assert values[arms[user]] >= max(values.values()) - 0.01
        assert predicted[user] == pytest.approx(m[arms[user]], rel=1e-5)
        assert variances[user] == pytest.approx(s[arms[user], arms[user]], rel=1e-5)
        surprising += arms[user] != best
    assert surprising > 30  # or nothing but favourites was tested


def excess(gap: float, deviation: float) -> float:
    """Return E[(deviation t - gap)+], t Student's with three degrees of freedom, scaled."""
    if deviation < 1e-12:
        return 0.0
    scale = deviation / math.sqrt(3)
    u = gap / scale
    return float(scale * ((3 + u * u) / 2 * stats.t.pdf(u, 3) - u * stats.t.sf(u, 3)))


def test_panel_plays_every_arm_alike() -> None:
    # 90,000 draws over three arms: six standard errors are 850.
    n_users = 90_000
    prior = Prior(np.array([0.1, 0.5, 0.9]), np.zeros((3, 0)), np.full(3, 0.01))
    nothing = np.zeros((n_users, 3), np.float32)
    ranks = np.zeros(n_users, np.float32)
    arms = np.full(n_users, -1, np.int32)
    predicted, variances = np.zeros((2, n_users), np.float32)
    decide(
        prior, Evidence(nothing, nothing), np.ones((n_users, 3), bool),
        Explorers(ranks, 0.5, NO_ASSIGNMENTS), np.ones(3), Schedule(10.0, 0, 1), SEED,
        Decision(arms, predicted, variances),
    )  # fmt: skip
    assert np.abs(np.bincount(arms) - 30_000).max() < 850


def test_crowds_are_cut_evenly() -> None:
    arms = np.random.default_rng(6).choice(
        np.array([-1, 0, 1, 2], np.int32), 500, p=[0.1, 0.6, 0.29, 0.01]
    )
    groups = np.empty(500, np.int32)
    end = cut_crowds(arms, 3, 12, 17, SEED, 7, groups)
    used = np.unique(groups[groups >= 0])
    assert used.tolist() == list(range(7, end))
    assert (groups[(arms == -1) | (arms == 2)] == -1).all()  # too few on arm 2
    for arm in (0, 1):
        sizes = np.unique(groups[arms == arm], return_counts=True)[1]
        assert sizes.min() >= 17
        assert sizes.max() <= sizes.min() + 1
        assert sizes.sum() == (arms == arm).sum()


def test_users_meet_at_random() -> None:
    # Any two of twelve share a group of three with probability 2 / 11; over 4,000 rounds that is
    # 727 times, give or take 24. Six standard errors, over 66 pairs: below 1e-6.
    together: IntArray = np.zeros((12, 12), np.int32)
    arms, groups = np.zeros((2, 12), np.int32)
    seeds = np.random.default_rng(7).integers(2**64, size=4000, dtype=np.uint64)
    for seed in seeds:
        cut_crowds(arms, 1, 3, 3, seed, 0, groups)
        together += groups[:, None] == groups
    pairs = together[np.triu_indices(12, 1)]
    assert np.abs(pairs - 4000 * 2 / 11).max() < 6 * 24.4


def test_draws_are_below_their_bound_and_all_reached() -> None:
    assert {draw(SEED, i, 7) for i in range(500)} == set(range(7))


@pytest.mark.parametrize(("least", "share"), [(4, 0.7), (20, 0.7), (20, 0.9), (10, 0.3)])
def test_groups_have_the_size_that_makes_most_totals_once_merged(least: int, share: float) -> None:
    rng = np.random.default_rng(5)

    def totals_per_member(size: int) -> float:
        reporters = rng.binomial(size, share, size=200_000 // size)
        into = merge_short(reporters, np.zeros_like(reporters), least)
        return len(np.unique(into[into >= 0])) / (size * len(reporters))

    most = max(totals_per_member(size) for size in range(least, 3 * least))
    assert totals_per_member(group_size(least, share, 3 * least)) > 0.97 * most


def test_it_learns_from_merged_groups_nearly_as_well_as_from_full_reports() -> None:
    # Six in ten report. Single draws cost from 1.3 to 1.7 times what full reports cost.
    worlds = np.random.default_rng(6).random((4, 400, 3))
    full, some = (sum(share(m, 10, 300, participation=p) for m in worlds) for p in (1.0, 0.6))
    assert some < 1.7 * full


@pytest.mark.parametrize(("left", "tried"), [(300.0, False), (20_000.0, True)])
def test_what_few_like_is_tried_where_there_is_time(left: float, tried: bool) -> None:
    # Arm 1 is three deviations behind, which a normal taste would hardly ever make up for.
    prior = Prior(np.array([0.5, 0.05]), np.zeros((2, 0)), np.array([1e-4, 0.15**2]))
    precision, value = np.zeros((2, 10, 2), np.float32)
    arms = np.full(10, -1, np.int32)
    predicted, variances, ranks = np.zeros((3, 10), np.float32)
    decide(
        prior, Evidence(precision, value), np.ones((10, 2), np.bool_),
        Explorers(ranks, 0.0, NO_ASSIGNMENTS), np.full(2, 8.0), Schedule(left, 0, 1), SEED,
        Decision(arms, predicted, variances),
    )  # fmt: skip
    assert (arms == int(tried)).all()


def test_smaller_groups_are_worth_more_where_rewards_are_rare() -> None:
    means = clustered(1500, 6, rng=np.random.default_rng(8), rate=0.03)
    shares = [share(means, size, 300) for size in (1, 5, 25)]
    assert shares == sorted(shares)


def test_expected_best_is_that_of_simulated_users() -> None:
    # Two independent arms, alike a priori: E[max] = mean + deviation / sqrt(pi). The tolerance is
    # beyond six standard errors of the average over the draws.
    normals = np.random.default_rng(8).standard_normal((200_000, 2))
    found = expected_best(np.full(2, 0.5), np.eye(2) * 0.04, np.full(2, 75.0), normals)
    deviation = math.sqrt(0.04**2 / (0.04 + 1 / 75))
    assert found == pytest.approx(0.5 + deviation / math.sqrt(math.pi), abs=0.003)
