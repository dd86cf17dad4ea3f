"""The guarantee: forced rounds as in its theorem, a fence around any learner, its inequalities."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shoal.environments import make_environment
from shoal.errors import InvalidInputError
from shoal.grouping import least_information
from shoal.model import Feedback, Plan, Problem
from shoal.policies import Policy, make_policy
from shoal.policies.base import Choice
from shoal.policies.contract import CHECKS
from shoal.policies.shoal import guarantee, make_shoal
from shoal.policies.shoal.guarantee import SHARE, Guaranteed


class Stubborn(Policy):
    """Plays each user's last allowed arm for ever, and learns nothing."""

    changing = (*Policy.changing, "allowed")

    def __init__(self, problem: Problem, *, rng: np.random.Generator) -> None:
        super().__init__(problem, rng=rng)
        self.allowed = np.ones((problem.n_users, problem.n_arms), bool)

    def _allow(self, eligible: np.ndarray) -> None:
        self.allowed = eligible

    def _choose(self) -> Choice:
        arms = self.allowed.shape[1] - 1 - self.allowed[:, ::-1].argmax(axis=1)
        return arms.astype(np.int32), np.full(len(arms), -1, np.int32), 2**40

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        pass


def often_forced(problem: Problem, *, rng: np.random.Generator) -> Guaranteed:
    """With a gamma so small that short horizons have forced rounds of both kinds."""
    return Guaranteed(make_shoal(problem, rng=rng), share=0.2, gamma=0.02)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_forced_rounds_keep_the_contract(check: Callable[..., None]) -> None:
    check(often_forced)


def play(policy: Policy, means: np.ndarray, seed: int = 0) -> tuple[list[Plan], np.ndarray]:
    """Play to the horizon; return the plans and each user's regret."""
    environment = make_environment(
        "bernoulli", policy.problem, means, rng=np.random.default_rng(seed)
    )
    plans, regret = [], np.zeros(len(means))
    users = np.arange(len(means))
    while policy.rounds < policy.need_horizon():
        plan = policy.ask()
        policy.tell(environment.play(plan))
        plans.append(plan)
        regret += plan.repeats * (means.max(axis=1) - means[users, plan.arms])
    return plans, regret


def test_short_horizons_are_played_as_without() -> None:
    """Where nothing could be excluded there is nothing to force: the plans are the same."""
    problem = Problem(24, 3, 3, horizon=2000)
    means = np.random.default_rng(1).random((24, 3))
    columns = []
    for option in (False, True):
        policy = make_shoal(problem, rng=np.random.default_rng(2), guarantee=option)
        plans, _ = play(policy, means)
        columns.append([(p.arms.tolist(), p.groups.tolist(), p.repeats) for p in plans])
    assert columns[0] == columns[1]


@pytest.mark.parametrize("n_users", [24, 10])
def test_an_epoch_begins_with_the_rounds_of_the_theorem(
    n_users: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """24 users can be clustered by six on each of three arms; ten can't. No arm goes here.

    Of the 24 users only twelve have the first arm left: with a third of them there it is too thin.
    """
    monkeypatch.setattr(guarantee, "eliminate", lambda active, *_, **__: active)
    horizon, share, gamma = 8192, 0.1, 0.1
    problem = Problem(n_users, 3, 3, horizon=horizon)
    rng = np.random.default_rng(0)
    policy = Guaranteed(Stubborn(problem, rng=rng), share=share, gamma=gamma)
    if n_users == 24:
        policy._fence[12:, 0] = False
        policy.allow(np.ones((24, 3), bool))
    active = policy._fence.copy()
    environment = make_environment("bernoulli", problem, np.full((n_users, 3), 0.5), rng=rng)
    bits = least_information(n_users, 3)
    started = []
    while policy.rounds < horizon:
        start, plan = policy.rounds, policy.ask()
        if plan.n_groups == 0:
            policy.tell(environment.play(plan))
            continue
        started.append(start)
        n_forced, traces = 0, 0
        per_arm = np.zeros((n_users, 3), int)
        while plan.n_groups:
            assert plan.repeats == 1
            crowds = np.bincount(plan.arms, minlength=3)
            informed = crowds[plan.arms] >= 6 if n_users == 24 else np.ones(n_users, bool)
            per_arm[np.arange(n_users)[informed], plan.arms[informed]] += 1
            n_forced, traces = n_forced + 1, traces + len(np.unique(plan.groups[plan.groups >= 0]))
            policy.tell(environment.play(plan))
            plan = policy.ask()
        # The totals of this epoch's forced rounds and no others.
        assert policy._forced.information.trace(axis1=2, axis2=3).sum() == pytest.approx(traces)
        if n_users == 24:
            demand = math.ceil(share * start)
            assert demand > 24 * gamma * 3 * 3
            need = -(-demand // active.sum(axis=1, keepdims=True))
            assert (per_arm >= need)[active].all()
            assert not per_arm[~active].any()
            assert n_forced <= 9 * demand + 71 * 3
        else:
            noise, arm_share = gamma / (2 * bits), 4 * share * start / 3
            n_rounds = math.ceil(noise ** (1 / 3) * arm_share ** (2 / 3))
            assert n_rounds > 8 * gamma / bits
            assert (per_arm == n_rounds).all()
    assert started == (
        [256, 512, 1024, 2048, 4096] if n_users == 24 else [128, 256, 512, 1024, 2048, 4096]
    )


def test_a_stubborn_learner_is_kept_to_good_arms() -> None:
    """With the theorem's own gamma: regret far below the learner's, and below the bound.

    The gap is 0.8 and the first fence has a width of 0.18, with a variance proxy of 0.001 of the
    estimates' difference: that the worse arm stays has probability below exp(-100) for each user.
    """
    horizon = 400_000
    problem = Problem(8, 2, 2, horizon=horizon)
    means = np.repeat([[0.9, 0.1], [0.1, 0.9]], 4, axis=0)
    rng = np.random.default_rng(0)
    policy = Guaranteed(Stubborn(problem, rng=rng), share=0.05)
    assert policy._gamma == pytest.approx(math.log(8 * 2 * horizon))
    _, regret = play(policy, means)
    assert (policy._fence == (means > 0.5)).all()
    alone = horizon * 0.8
    # The first epoch with forced rounds starts at T/8: before it nothing is known.
    assert regret[:4].max() < 0.2 * alone
    assert regret[4:].max() < 0.02 * alone
    root = math.sqrt(96 * 0.25 * policy._gamma * 2 * 2 * horizon / 0.05)
    assert regret.max() <= (1 + 2 * 9 * 0.05) * 2.42 * root


def test_a_minority_of_one_is_found_without_clusters() -> None:
    """Four of five users like the second arm; the learner would give it to all of them.

    In the first epoch the estimates' difference has a variance proxy of 0.003 and the fence a width
    of 0.3, at a gap of 0.8: that the worse arm stays has probability exp(-41) for each user.
    """
    horizon, share = 200_000, 0.05
    problem = Problem(5, 2, 2, horizon=horizon)
    means = np.array([[0.9, 0.1], *[[0.1, 0.9]] * 4])
    policy = Guaranteed(Stubborn(problem, rng=np.random.default_rng(0)), share=share)
    _, regret = play(policy, means)
    assert (policy._fence == (means > 0.5)).all()
    assert regret[0] < 0.6 * 0.8 * horizon
    bits = least_information(5, 2)
    x = (2 * 0.25 * 2 * policy._gamma / bits) ** (1 / 3) * horizon ** (2 / 3)
    factor = 3.64 * (1 + 2 * 9 * share) / share ** (1 / 3) + 2 * (4 * share) ** (2 / 3)
    assert regret.max() <= 1.71 * factor * x


@pytest.mark.parametrize("n_users", [24, 10])
def test_forced_rounds_keep_to_eligible_arms(n_users: int) -> None:
    problem = Problem(n_users, 3, 3, horizon=600)
    policy = often_forced(problem, rng=np.random.default_rng(0))
    rng = np.random.default_rng(1)
    environment = make_environment("bernoulli", problem, rng.random((n_users, 3)), rng=rng)
    n_forced = 0
    for turn in range(600):
        if turn % 50 == 0:
            eligible = rng.random((n_users, 3)) < 0.8
            eligible[0] = False  # a user who has left
            policy.allow(eligible)
        plan = policy.ask()
        n_forced += not set(policy._forced.idle)
        present = eligible.any(axis=1)
        assert eligible[np.arange(n_users), plan.arms][present].all()
        assert (plan.groups[~present] == -1).all()
        policy.tell(environment.play(plan))
        if policy.rounds >= 600:
            break
    assert n_forced > 20


@pytest.mark.parametrize(
    ("options", "n_users", "horizon", "message"),
    [
        ({"drift": 1e-5}, 24, 100, "guarantee must be False with drift"),
        ({}, 300, 100, "shards of more than 256 users"),
        ({}, 24, None, "needs a horizon"),
        ({}, 3, 100, "n_users must be greater than min_group_size"),
    ],
)
def test_what_the_guarantee_needs(
    options: dict[str, Any], n_users: int, horizon: int | None, message: str
) -> None:
    problem = Problem(n_users, 3, 3, horizon=horizon)
    with pytest.raises(InvalidInputError, match=message):
        make_policy(
            "shoal", problem, rng=np.random.default_rng(0), options={"guarantee": True, **options}
        )


@pytest.mark.parametrize("share", [SHARE, 1 / 18])
@pytest.mark.parametrize("factor", [1, 4])
def test_forced_rounds_fit_into_their_epochs(share: float, factor: int) -> None:
    """With at most 9·D + 71·K of home and away, and K·n of everyone's, wherever any are forced."""
    n_forced = 0
    for size, n_arms in ((1, 2), (4, 5), (2, 200), (100, 2), (50, 50)):
        for n_users in {size + 1, 2 * size, 2 * size * n_arms, 50 * size * n_arms}:
            bits = least_information(n_users, size)
            for exponent in range(10, 50):
                horizon = 3**exponent // 2
                gamma = factor * math.log(n_users * n_arms * horizon)
                for halvings in range(1, horizon.bit_length() + 1):
                    start = -(-horizon >> halvings)
                    length = -(-horizon >> (halvings - 1)) - start
                    demand = math.ceil(share * start)
                    if n_users >= 2 * size * n_arms and demand > 24 * gamma * size * n_arms:
                        assert 9 * demand + 71 * n_arms <= length
                        n_forced += 1
                    arm_share = 4 * share * start / n_arms
                    n_rounds = bits and (gamma / (2 * bits)) ** (1 / 3) * arm_share ** (2 / 3)
                    if bits and math.ceil(n_rounds) > 8 * gamma / bits:
                        assert n_arms * math.ceil(n_rounds) <= length
                        n_forced += 1
    assert n_forced > 1000


def test_the_inequalities_of_the_theorem() -> None:
    """Every epoch's loss is at most 3.64·X/c^(1/3), whatever its kind, and sums as stated."""
    assert sum(2 ** (-k / 2) for k in range(1, 200)) <= 2.42
    assert sum(2 ** (-2 * k / 3) for k in range(1, 200)) <= 1.71
    assert 1 + 2 * 9 * SHARE <= 1.18 + 1e-12
    for size in range(1, 30):
        for crowd in range(max(2, 2 * size), 200):
            assert least_information(crowd, size) <= 1 / size + 1e-12
    for proxy in (0.25, 1.0):
        for log in (5.0, 30.0):
            for pairs in (1, 20, 2000):  # C·K, with 1/b = C
                for share in (0.001, 0.01, 1.0):
                    for length in np.geomspace(1, 1e15, 60):
                        x = (2 * proxy * pairs * log) ** (1 / 3) * length ** (2 / 3)
                        y = math.sqrt(96 * proxy * log * pairs * length / share)
                        assert min(length, y) <= 3.64 * x / share ** (1 / 3)
                        # Explore-then-commit with c = 1 has an error e of T·e = 2X.
                        n_rounds = (4 * share) ** (2 / 3) * x / pairs  # K·n, for K = C·K
                        error = math.sqrt(8 * proxy * log / n_rounds)
                        assert length * 2 * error == pytest.approx(
                            4 ** (2 / 3) * x / share ** (1 / 3)
                        )
    # The forced rounds of an epoch that pays are as many as the lemma asks for.
    for proxy in (0.25, 1.0):
        gamma_per_log = 4 * proxy
        assert 24 * gamma_per_log >= 24  # D > 24·gamma·C·K and the lemma's 24·C·K·L
        assert 8 * gamma_per_log >= 8  # n > 8·gamma/b and the lemma's 8·L/b
