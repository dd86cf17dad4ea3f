"""Section 3.1: 2C+2 rounds, groups of C+1 to 2C+1, unbiased, 2|G|-1 rewards in every sample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.environments import make_environment
from shoal.model import Plan, Problem
from shoal.policies.paper.leave_one_out import LeaveOneOut, Rota, leave_out, split_crowds

Z_ONE_IN_A_BILLION = 6.1  # two-sided normal tail of 1e-9: a thousand checks stay below 1e-6


def _run(
    problem: Problem,
    means: NDArray[np.float64],
    arms: NDArray[np.int32],
    repeats: int,
    *,
    seed: int = 0,
    rewards: str = "bernoulli",
    participation: float = 1.0,
) -> tuple[LeaveOneOut, list[Plan]]:
    """Run one assignment through the sub-algorithm."""
    environment = make_environment(
        rewards, problem, means, rng=np.random.default_rng(seed), participation=participation
    )
    samples = LeaveOneOut(problem)
    for shard in range(problem.n_shards):
        samples.load(shard, arms[None, problem.shard(shard)], np.array([repeats]))
    plans = []
    while not samples.idle:
        plan = Plan(*samples.choose(), problem=problem)
        samples.learn(plan, environment.play(plan).unmerged(plan))
        plans.append(plan)
    return samples, plans


def test_one_pass_takes_2c_plus_2_rounds_and_leaves_everyone_out_once() -> None:
    problem = Problem(n_users=11, n_arms=2, min_group_size=3)
    arms = np.array([0] * 9 + [1] * 2, np.int32)
    samples, plans = _run(problem, np.full((11, 2), 0.5), arms, repeats=5)
    assert sum(plan.repeats for plan in plans) == 5 * (2 * 3 + 2)
    whole = plans[0].groups
    left_out = [np.flatnonzero((whole >= 0) & (plan.groups < 0)) for plan in plans[1:]]
    assert sorted(np.concatenate(left_out).tolist()) == list(range(9))
    np.testing.assert_array_equal(samples.tally.counts[:, 0], [5] * 9 + [0] * 2)
    np.testing.assert_array_equal(samples.tally.counts[:, 1], 0)


def test_deterministic_rewards_are_recovered_exactly(rng: np.random.Generator) -> None:
    problem = Problem(n_users=40, n_arms=3, min_group_size=4, n_shards=2)
    means = rng.random((40, 3))
    arms = np.tile(np.repeat([0, 1, 2], [7, 9, 4]), 2).astype(np.int32)
    samples, _ = _run(problem, means, arms, repeats=7, rewards="deterministic")
    informative = arms < 2
    users = np.flatnonzero(informative)
    estimates = samples.tally.sums[users, arms[users]] / samples.tally.counts[users, arms[users]]
    np.testing.assert_allclose(estimates, means[users, arms[users]], atol=1e-12)
    assert samples.tally.counts[~informative].sum() == 0


@pytest.mark.slow
@pytest.mark.parametrize("n_users", [5, 7, 9, 23])
def test_samples_are_unbiased_with_the_variance_of_2g_minus_1_rewards(n_users: int) -> None:
    """False alarm below 1e-6: 44 means and 44 variances, each judged at 1e-9."""
    passes = 4000  # one in each shard
    problem = Problem(n_users * passes, n_arms=1, min_group_size=4, n_shards=passes)
    means = np.random.default_rng(n_users).random((n_users, 1))
    arms = np.zeros(problem.n_users, np.int32)
    samples, plans = _run(problem, np.tile(means, (passes, 1)), arms, 1, seed=1)
    draws = samples.tally.sums.reshape(passes, n_users)
    groups = plans[0].groups[:n_users]
    noise = means[:, 0] * (1 - means[:, 0])
    for user in range(n_users):
        members = groups == groups[user]
        variance = 2 * noise[members].sum() - noise[user]  # 2|G|-1 independent rewards
        error = draws[:, user].mean() - means[user, 0]
        assert abs(error) < Z_ONE_IN_A_BILLION * np.sqrt(variance / passes)
        # A sum of many independent bounded terms: its square has a variance of about 2·variance².
        spread = (draws[:, user] - means[user, 0]) ** 2
        assert abs(spread.mean() - variance) < Z_ONE_IN_A_BILLION * spread.std() / np.sqrt(passes)


def test_samples_stay_unbiased_when_only_some_report() -> None:
    """False alarm below 1e-6: 12 users, each judged at 1e-9."""
    problem = Problem(12 * 800, n_arms=1, min_group_size=3, n_shards=800)
    means = np.random.default_rng(3).random((12, 1))
    arms = np.zeros(problem.n_users, np.int32)
    samples, _ = _run(problem, np.tile(means, (800, 1)), arms, 1, participation=0.8)
    known = samples.tally.counts > 0
    table = np.where(known, samples.tally.sums, np.nan).reshape(800, 12)
    n = np.isfinite(table).sum(axis=0)
    assert (n > 100).all()
    assert (n < 800).any()  # some groups were withheld
    error = np.nanmean(table, axis=0) - means[:, 0]
    assert (np.abs(error) < Z_ONE_IN_A_BILLION * np.nanstd(table, axis=0) / np.sqrt(n)).all()


def test_a_state_of_version_0_1_with_the_tally_in_parts_is_restored() -> None:
    problem = Problem(n_users=9, n_arms=2, min_group_size=2)
    samples = LeaveOneOut(problem)
    samples.load(0, np.array([[0, 0, 0, 0, 1, 1, 1, 1, 1]], np.int32), np.array([3]))
    state = samples.state()
    tally = state.pop("tally")
    state |= {name: tally[name] for name in ("sums", "counts")} | {"_times": tally["rounds"]}
    state |= {f"_{name}": tally[name] for name in ("phases", "whole", "part")}
    state |= {f"_{name}": column for name, column in tally["rota"].items()}
    other = LeaveOneOut(problem)
    other.restore(state)
    assert other.state()["tally"].keys() == tally.keys()
    np.testing.assert_array_equal(samples.tally.rota.groups, other.tally.rota.groups)
    np.testing.assert_array_equal(samples.choose()[1], other.choose()[1])


def new_rota(n_users: int) -> Rota:
    return Rota(np.full(n_users, -1, np.int32), *np.zeros((2, n_users), np.int32))


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(1, 6))
def test_crowds_are_split_into_groups_of_c_plus_1_to_2c_plus_1(
    arms: list[int], min_group_size: int
) -> None:
    rota = new_rota(len(arms))
    groups, places, sizes = rota
    crowd_arms = np.array(arms, np.int32)
    split_crowds(crowd_arms, 4, min_group_size + 1, 0, rota)
    for arm in range(4):
        crowd = np.flatnonzero(crowd_arms == arm)
        assert (groups[crowd] >= 0).all() == (len(crowd) > min_group_size or len(crowd) == 0)
    for group in set(groups.tolist()) - {-1}:
        members = np.flatnonzero(groups == group)
        assert min_group_size + 1 <= len(members) <= 2 * min_group_size + 1
        assert len(set(crowd_arms[members])) == 1
        assert sorted(places[members]) == list(range(1, len(members) + 1))
        assert sizes[group] == len(members)


def test_only_the_user_whose_turn_it_is_leaves_the_group() -> None:
    rota = new_rota(8)
    split_crowds(np.zeros(8, np.int32), 1, 3, 0, rota)
    committed = np.zeros(1, bool)
    for turn in range(6):
        groups = leave_out(rota, np.array([turn]), committed)
        expected = np.where(rota.places == turn, -1, rota.groups)
        np.testing.assert_array_equal(groups, expected)
    assert (leave_out(rota, np.array([1]), ~committed) == -1).all()
