from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shoal.errors import InvalidInputError, UnknownNameError
from shoal.experiments import Run, Setting, simulate
from shoal.experiments.run import (
    ChangingPlay,
    Play,
    RegretMeter,
    make_play,
    spread_checkpoints,
)
from shoal.experiments.seeds import stream
from shoal.instances import uniform
from shoal.model import Plan, Problem
from shoal.policies.baselines import RandomPlay
from shoal.policies.tuned import tuned_options

MEANS = np.random.default_rng(0).random((12, 3))


def test_regret_is_counted_literally_at_every_checkpoint(rng: np.random.Generator) -> None:
    problem = Problem(n_users=12, n_arms=3, min_group_size=2, horizon=40, n_shards=2)
    checkpoints = np.array([1, 7, 8, 25, 40])
    meter = RegretMeter(MEANS, problem, checkpoints)
    played: list[list[float]] = []
    for repeats in (1, 2, 10, 20, 7):
        arms = rng.integers(3, size=12)
        meter.add(Plan(arms, np.full(12, -1), repeats, problem=problem))
        gaps = MEANS.max(axis=1) - MEANS[np.arange(12), arms]
        played += [[gaps[:6].sum(), gaps[6:].sum()]] * repeats
    expected = np.cumsum(played, axis=0)[checkpoints - 1].T
    np.testing.assert_allclose(meter.curves, expected)


@pytest.mark.parametrize(("horizon", "n"), [(1, 5), (10, 3), (100_000, 200), (7, 7)])
def test_checkpoints_end_at_the_horizon(horizon: int, n: int) -> None:
    checkpoints = spread_checkpoints(horizon, n)
    assert checkpoints[-1] == horizon
    assert checkpoints[0] >= 1
    assert len(checkpoints) == min(horizon, n)
    assert (np.diff(checkpoints) > 0).all()


def test_a_run_shows_what_the_contract_promises() -> None:
    run = simulate(
        "elimination-lp",
        uniform(30, 3, rng=np.random.default_rng(1)),
        min_group_size=4,
        horizon=5_000,
        rewards="bernoulli",
        participation=1.0,
        seed=0,
        tuned=False,
    )
    assert isinstance(run.regret, float)
    assert run.rounds[-1] == 5_000
    assert run.cumulative_regret.shape == run.rounds.shape
    assert run.cumulative_regret[-1] == pytest.approx(run.regret)
    assert (np.diff(run.cumulative_regret) >= 0).all()
    assert run.smallest_group == 4


def test_the_same_seed_gives_the_same_bytes_and_another_does_not() -> None:
    def curves(seed: int) -> bytes:
        run = simulate("elimination-random", MEANS, min_group_size=2, horizon=500, seed=seed)
        return run.curves.tobytes()

    assert curves(3) == curves(3)
    assert curves(3) != curves(4)


def test_shards_are_runs_side_by_side() -> None:
    stack = np.stack([MEANS, 1 - MEANS])
    run = simulate("best-arm", stack, min_group_size=2, horizon=100)
    for means, curve in zip(stack, run.curves, strict=True):
        alone = simulate("best-arm", means, min_group_size=2, horizon=100)
        np.testing.assert_allclose(curve, alone.cumulative_regret)


def test_best_arm_is_the_best_single_arm_in_hindsight() -> None:
    run = simulate("best-arm", MEANS, min_group_size=2, horizon=10)
    best = 10 * (MEANS.max(axis=1).sum() - MEANS.sum(axis=0).max())
    assert run.regret == pytest.approx(best)


def test_random_play_costs_the_mean_gap() -> None:
    """False alarm below 1e-9: 1,000 rounds of 12 users, judged at 6 standard errors and more."""
    run = simulate("random", MEANS, min_group_size=2, horizon=1_000)
    gaps = MEANS.max(axis=1, keepdims=True) - MEANS
    error = 7 * np.sqrt(1_000 * gaps.var(axis=1).sum())
    assert abs(run.regret - 1_000 * gaps.mean(axis=1).sum()) < error


def test_withheld_totals_are_counted_and_small_groups_are_never_seen() -> None:
    run = simulate("elimination-greedy", MEANS, min_group_size=3, horizon=2_000, participation=0.7)
    assert run.withheld > 0
    assert run.smallest_group == 3


def test_a_policy_of_ones_own_can_be_passed() -> None:
    run = simulate(RandomPlay, MEANS, min_group_size=2, horizon=10)
    assert run.policy == "RandomPlay"


def test_options_are_the_tuned_ones_unless_the_caller_says_otherwise() -> None:
    def play(**changes: Any) -> Run:
        return simulate("explore-then-commit", MEANS, min_group_size=2, horizon=50, **changes)

    assert play().options == tuned_options("uniform", "explore-then-commit")
    assert play(instance="linear").options == tuned_options("linear", "explore-then-commit")
    assert play(options={"exploration": 0.4}).options == {"exploration": 0.4}
    assert play(tuned=False).options == {}
    assert "options={'exploration': 0.18}" in repr(play())


def test_without_means_the_settings_instance_is_drawn() -> None:
    setting = Setting(n_users=12, n_arms=3, min_group_size=2, horizon=50, instance="linear", seed=2)
    drawn = simulate("shoal", setting=setting)
    passed = simulate("shoal", setting.draw(), min_group_size=2, horizon=50, seed=2)
    assert drawn.curves.tobytes() == passed.curves.tobytes()


def test_progress_adds_up_to_the_horizon() -> None:
    told: list[int] = []
    simulate("random", MEANS, min_group_size=2, horizon=1_000, progress=told.append)
    assert sum(told) == 1_000
    assert 90 <= len(told) <= 101


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"policy": "ucbb"}, UnknownNameError, "policy .* did you mean 'ucb'"),
        ({"rewards": "bernouli"}, UnknownNameError, "rewards .* did you mean 'bernoulli'"),
        (
            {"means": [0.1, 0.2]},
            InvalidInputError,
            r"means must be numbers of shape",
        ),
        ({"means": [["a"]]}, InvalidInputError, "means must be numbers"),
        ({"means": [[0.2, 1.2]] * 4}, InvalidInputError, "user 0 on arm 1 .* between 0 and 1"),
        ({"means": [[0.2, np.nan]] * 4}, InvalidInputError, "user 0 on arm 1 .* got nan"),
        ({"horizon": 0}, InvalidInputError, "horizon must be a whole number of at least 1; got 0"),
        ({"min_group_size": 13}, InvalidInputError, "min_group_size must be between 1 and n_users"),
        ({"participation": 1.5}, InvalidInputError, "participation must be a number between 0"),
        ({"seed": -1}, InvalidInputError, "seed must be a whole number of at least 0; got -1"),
        ({"n_checkpoints": 0}, InvalidInputError, "n_checkpoints must be a whole number"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    arguments: dict[str, Any] = {
        "policy": "random", "means": MEANS, "min_group_size": 2, "horizon": 10,
    }  # fmt: skip
    with pytest.raises(error, match=message):
        simulate(**(arguments | change))


def test_streams_depend_on_seed_and_names_only() -> None:
    one = stream(1, "a", 2).random(4)
    assert (stream(1, "a", 2).random(4) == one).all()
    for other in (stream(2, "a", 2), stream(1, "b", 2), stream(1, "a", 3), stream(1, "a")):
        assert (other.random(4) != one).all()


def test_people_who_change_stay_the_same_population() -> None:
    setting = Setting(n_users=400, n_arms=2, min_group_size=2, horizon=30, turnover=0.1)
    means = setting.draw().reshape(2, 200, 2)
    play = make_play("random", means, setting, {})
    play.finish()
    environment = play.environment.means
    assert isinstance(play, ChangingPlay)
    for shard in range(2):
        part = slice(200 * shard, 200 * shard + 200)
        assert sorted(environment[part].tolist()) == sorted(means[shard].tolist())
    # (1 - 0.1)^30 = 4 % keep their means: 17 of 400, deviation 4; others by chance.
    assert (environment == means.reshape(-1, 2)).all(axis=1).sum() < 45
    still = make_play("random", means, replace(setting, turnover=0.0), {})
    assert type(still) is Play


def test_a_run_of_people_who_change_continues_from_its_state() -> None:
    setting = Setting(n_users=40, n_arms=2, min_group_size=2, horizon=40, turnover=0.2)
    means = setting.draw()[None]
    whole = make_play("shoal", means, setting, {})
    whole.advance(15)
    state = whole.state()
    again = make_play("shoal", means, setting, {})
    again.restore(state)
    np.testing.assert_array_equal(again.environment.means, whole.environment.means)
    np.testing.assert_array_equal(again.finish().curves, whole.finish().curves)


def test_drift_helps_a_learner_where_people_change() -> None:
    """Fixed seed: forgetting costs less than believing what was true of somebody else."""
    means = np.where(np.arange(400)[:, None] % 2 == np.arange(2), 0.9, 0.1)
    lost = [
        simulate(
            "shoal", means, options={"drift": drift}, min_group_size=2, horizon=400, turnover=0.01
        ).regret
        for drift in (0.0, 2 * 0.01 * 0.16)
    ]
    assert lost[1] < lost[0]
