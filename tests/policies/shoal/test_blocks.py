"""Blocks: who sits where, when they are used, and what a total across blocks says to each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from shoal.errors import InvalidInputError
from shoal.experiments import simulate
from shoal.grouping import RoundTotals
from shoal.model import Problem
from shoal.policies import make_policy
from shoal.policies.contract import CHECKS, Arena
from shoal.policies.shoal import pays_in_blocks
from shoal.policies.shoal.blocks import BlockPolicy, block_shape, deal
from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.joint.posterior import JointPosterior, of_others, reward_noise
from shoal.policies.shoal.population.policy import PopulationPolicy


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_blocks_keep_the_contract(check: Callable[..., None]) -> None:
    check(partial(BlockPolicy, max_size=6))


@pytest.mark.parametrize(("n_users", "n_shards"), [(257, 1), (601, 1), (1_200, 2), (5_120, 1)])
def test_everyone_has_a_seat_of_their_own_in_a_block_of_their_shard(
    n_users: int, n_shards: int
) -> None:
    problem = Problem(n_users, 2, 4, n_shards=n_shards)
    n_blocks, size = block_shape(problem.shard_size, JOINT.max_users)
    seats = deal(problem, n_blocks, size)
    assert size <= JOINT.max_users
    assert len(np.unique(seats)) == n_users
    assert seats.max() < n_shards * n_blocks * size
    shards = np.arange(n_users) // problem.shard_size
    np.testing.assert_array_equal(seats // (n_blocks * size), shards)
    filled = np.bincount(seats // size)
    assert filled.max() - filled.min() <= 1


@pytest.mark.parametrize(
    ("problem", "blocks"),
    [
        (Problem(600, 5, 6, horizon=2_000), True),
        (Problem(600, 5, 6, horizon=299), False),  # too few rounds
        (Problem(600, 5, 6), False),  # nobody knows how many
        (Problem(600, 5, 30, horizon=20_000), False),  # crowds too thin
        (Problem(6_000, 5, 6, horizon=2_000), False),  # too many users
    ],
)
def test_blocks_are_for_thick_crowds_and_many_rounds(problem: Problem, blocks: bool) -> None:
    assert pays_in_blocks(problem) is blocks
    policy = make_policy("shoal", problem, rng=np.random.default_rng(0))
    assert type(policy) is (BlockPolicy if blocks else PopulationPolicy)


def test_a_state_of_an_earlier_version_is_refused_with_what_to_do() -> None:
    problem = Problem(600, 5, 6, horizon=2_000)
    earlier = PopulationPolicy(problem, rng=np.random.default_rng(0))
    policy = make_policy("shoal", problem, rng=np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match="shoal relearn"):
        policy.restore(earlier.state())


def test_a_total_across_blocks_is_less_what_the_others_are_expected_to_add() -> None:
    rng = np.random.default_rng(0)
    posterior = JointPosterior(Problem(8, 1, 2, n_shards=2))
    belief = posterior.belief
    belief.means[:] = rng.uniform(0.2, 0.8, belief.means.shape)
    groups = np.array([0, 0, 1, 1, 0, 2, 2, 2], np.int32)  # the first crosses
    reported = np.array([1, 2, 1, 1, 3, 1, 0, 1], np.int32)
    released = np.ones(3, np.int32)
    others = of_others(
        belief, RoundTotals(np.zeros(8, np.int32), groups, np.zeros(3), released, reported)
    )
    for parts in others:
        assert (parts[:, 1:] == 0).all()
    second = belief.means[1, 0, 0], belief.covariances[1, 0, 0, 0]
    assert others.means[0, 0] == pytest.approx(3 * second[0])
    assert others.noise[0, 0] == pytest.approx(3 * reward_noise(*second))
    assert others.variances[0, 0] == pytest.approx(9 * second[1])
    times = np.array([1, 2])
    first, covariance = belief.means[0, 0, :2], belief.covariances[0, 0, :2, :2]
    noise = [reward_noise(m, v) for m, v in zip(first, covariance.diagonal(), strict=True)]
    assert others.means[1, 0] == pytest.approx(times @ first)
    assert others.noise[1, 0] == pytest.approx(times @ noise)
    assert others.variances[1, 0] == pytest.approx(times @ covariance @ times)


def test_beliefs_are_calibrated_where_groups_cross_blocks() -> None:
    """Deviations of errors from their believed ones: 0.91 to 1.09 over four seeds."""
    problem = Problem(60, 2, 3, horizon=1_000)
    arena, rng = Arena(problem), np.random.default_rng(0)
    policy = BlockPolicy(problem, rng=rng, max_size=20)
    for _ in range(400):
        plan = policy.ask()
        groups = np.full(60, -1)
        for arm in range(2):
            crowd = rng.permutation(np.flatnonzero(plan.arms == arm))
            n_groups = len(crowd) // 3
            groups[crowd[: 3 * n_groups]] = (groups.max() + 1) + np.arange(3 * n_groups) // 3
        policy.regroup(groups)
        policy.tell(arena.play(policy.ask()))
    beliefs = policy.beliefs()
    scores = (beliefs.means - arena.means) / beliefs.deviations
    assert 0.7 < np.sqrt((scores**2).mean()) < 1.3
    best = arena.means.argmax(axis=1)
    assert (beliefs.means.argmax(axis=1) == best).mean() > 0.8  # a half by chance
    some = np.array([3, 59])
    np.testing.assert_array_equal(policy.beliefs(users=some).means, beliefs.means[some])


@pytest.mark.slow
def test_a_minority_of_a_large_population_is_found() -> None:
    """Regret of 0.13 to 0.15 of never finding anyone, over three seeds."""
    rng = np.random.default_rng(8)
    means = 0.7 * rng.uniform(0.15, 0.85, (300, 4))
    means[:, 0] = 0.7
    means[rng.permutation(300)[:60], 1] = 0.9
    run = simulate("shoal", means, min_group_size=6, horizon=3_000, seed=8)
    assert run.regret < 0.25 * 3_000 * 60 * 0.2
