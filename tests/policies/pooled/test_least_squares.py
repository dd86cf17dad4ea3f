"""Design 5.1: what one round of random groups tells, and that the estimates are as good as said."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.environments import make_environment
from shoal.grouping import RoundTotals, regroup
from shoal.model import Plan, Problem
from shoal.policies.pooled.least_squares import Pooled, add_totals

CROWDS = [(8, 4), (9, 4), (11, 4), (12, 4), (23, 4), (40, 4), (10, 5), (6, 2), (5, 4), (7, 4)]


@pytest.mark.slow
@pytest.mark.parametrize(("crowd", "min_group_size"), CROWDS)
def test_a_round_tells_as_much_as_the_formula_says(crowd: int, min_group_size: int) -> None:
    """The mean information matrix of many rounds against its expectation, entry by entry.

    Entries are means of 20,000 independent values in [0, 1/C], judged at 7 standard errors: a
    false alarm has probability below 1e-6 over all of them.
    """
    n_groups = crowd // min_group_size
    rng = np.random.default_rng(crowd)
    information = np.zeros((1, 1, crowd, crowd))
    arms, groups = np.zeros(crowd, np.int32), np.empty(crowd, np.int32)
    rounds = 20_000
    for _ in range(rounds):
        regroup(arms, 1, min_group_size, 0, rng.random(crowd), groups)
        played = RoundTotals(
            arms, groups, np.zeros(n_groups), np.ones(n_groups, np.int32),
            (groups >= 0).astype(np.int32),
        )  # fmt: skip
        add_totals(played, information, np.zeros((1, 1, crowd)))
    if n_groups > 1:
        on_ones, on_contrasts = 1.0, (n_groups - 1) / (crowd - 1)
    else:
        on_ones = min_group_size / crowd
        on_contrasts = (crowd - min_group_size) / (crowd * (crowd - 1))
    ones = np.full((crowd, crowd), 1 / crowd)
    expected = on_ones * ones + on_contrasts * (np.eye(crowd) - ones)
    error = 7 * 0.5 / min_group_size / np.sqrt(rounds)
    np.testing.assert_allclose(information[0, 0] / rounds, expected, atol=error)


@pytest.mark.parametrize(("crowd", "min_group_size"), [(8, 4), (23, 4), (40, 5), (5, 4)])
def test_estimates_are_unbiased_and_worth_what_they_claim(crowd: int, min_group_size: int) -> None:
    """Gaussian rewards: squared errors in units of the claimed variance have mean 1.

    400 replications; users of one replication are dependent, so each user is judged alone at
    6.1 standard errors (1e-9 each).
    """
    n_runs, rounds = 400, 120
    problem = Problem(crowd * n_runs, 1, min_group_size, n_shards=n_runs)
    means = np.random.default_rng(1).random((problem.n_users, 1))
    rng = np.random.default_rng(2)
    environment = make_environment("gaussian", problem, means, rng=rng)
    samples = Pooled(problem, rng=rng)
    for shard in range(n_runs):
        samples.load(shard, np.zeros((1, crowd), np.int32), np.array([rounds]))
    while not samples.idle:
        plan = Plan(*samples.choose(), problem=problem)
        samples.learn(plan, environment.play(plan))
    found = [samples.estimates(shard) for shard in range(n_runs)]
    errors = np.array([m[:, 0] for m, _ in found]) - means.reshape(n_runs, crowd)
    worth = np.array([c[:, 0] for _, c in found])
    scores = errors * np.sqrt(worth)
    assert (np.abs(scores.mean(axis=0)) < 6.1 / np.sqrt(n_runs)).all()
    assert (np.abs((scores**2).mean(axis=0) - 1) < 6.1 * np.sqrt(2 / n_runs)).all()
    if crowd >= 2 * min_group_size:
        # Between C and 2C rewards' worth of variance per round, up to the spread of the design.
        variance_per_round = rounds / worth.mean()
        assert 0.95 * min_group_size < variance_per_round < 2.2 * min_group_size


def test_users_never_told_apart_are_worth_nothing() -> None:
    problem = Problem(4, 1, 4)
    samples = Pooled(problem, rng=np.random.default_rng(0))
    samples.load(0, np.zeros((1, 4), np.int32), np.array([50]))
    environment = make_environment(
        "bernoulli", problem, np.full((4, 1), 0.5), rng=np.random.default_rng(0)
    )
    while not samples.idle:
        plan = Plan(*samples.choose(), problem=problem)
        samples.learn(plan, environment.play(plan))
    assert samples.estimates(0)[1].max() < 1e-6
