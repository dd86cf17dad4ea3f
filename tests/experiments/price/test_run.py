from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from shoal.engines import LocalEngine
from shoal.errors import InvalidInputError, UnknownNameError
from shoal.experiments import Price, Setting, price, simulate
from shoal.experiments.price.run import PURPOSE, make_population
from shoal.experiments.seeds import stream
from shoal.experiments.setting import SettingOptions
from shoal.instances import uniform

ONE = LocalEngine(n_workers=1)


class Idle(LocalEngine):
    """An engine that nobody may use."""

    def run(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("a worker was started")


SMALL: dict[str, Any] = {
    "n_users": 300, "n_arms": 3, "rate": 0.2, "horizon": 30, "min_group_sizes": [2, 20],
    "n_runs": 3,
}  # fmt: skip


def small(**changes: Any) -> Price:
    return price(**{"engine": ONE, **SMALL, **changes})


def of_means(means: Any, **changes: Any) -> Price:
    population = {"n_users": None, "n_arms": None, "rate": None, "means": means}
    return small(**population, **changes)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answer_whatever_the_workers() -> None:
    answer = small().to_dict()
    assert answer == small(engine=LocalEngine(n_workers=2)).to_dict()
    assert answer != small(seed=1).to_dict()


def test_rewards_shares_and_losses_are_what_a_simulation_says() -> None:
    means = uniform(60, 4, rng=np.random.default_rng(3))
    found = of_means(means, policy="pooled-thompson", horizon=250, min_group_sizes=[5, 3], n_runs=2)
    best, full = means.mean(axis=0).max(), means.max(axis=1).mean()
    earned = {
        size: [
            full - simulate(
                "pooled-thompson", means, min_group_size=size, horizon=250,
                seed=int(stream(0, "price", "play", run).integers(2**32)),
            ).regret / (60 * 250)
            for run in range(2)
        ]
        for size in (3, 5)
    }  # fmt: skip
    assert [cost.min_group_size for cost in found.costs] == [3, 5]
    assert found.best_arm == pytest.approx(best)
    assert found.full_knowledge == pytest.approx(full)
    assert found.mean_rate == pytest.approx(means.mean())
    for cost in found.costs:
        own = np.mean(earned[cost.min_group_size])
        assert cost.runs == pytest.approx(tuple(earned[cost.min_group_size]))
        assert cost.reward.mean == pytest.approx(own)
        assert cost.share.mean == pytest.approx((own - best) / (full - best))
        assert cost.loss.mean == pytest.approx(np.mean(earned[3]) - own)


def test_every_group_size_meets_the_same_populations_with_the_same_luck() -> None:
    """Random play does not know C, so that nothing at all may differ."""
    found = small(policy="random", min_group_sizes=[1, 7, 100])
    assert all(cost.loss.mean == cost.loss.half == 0 for cost in found.costs)
    assert np.ptp(found.costs[0].runs) > 0


def test_the_stretches_add_up_to_the_reward() -> None:
    found = small(horizon=250)
    lengths = np.diff(found.rounds, prepend=0)
    assert len(found.rounds) == 100
    assert set(lengths) == {2, 3}
    for cost, curve in zip(found.costs, found.curves, strict=True):
        assert curve @ lengths / 250 == pytest.approx(cost.reward.mean)


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
def test_populations_have_the_rate_that_was_asked_for(rate: float) -> None:
    fields: SettingOptions = {"n_users": 100, "n_arms": 10, "horizon": 1}
    setting, _ = make_population(rate, None, None, fields, min_group_size=2)
    rates = [setting.draw(run, purpose=PURPOSE).mean() for run in range(1_500)]
    # Deviation of the mean: about rate / sqrt(6 tastes x 10 arms x 1,500 draws) = 0.0033 rate;
    # the cap on means takes up to 1.5 % at a rate of 0.2.
    assert np.mean(rates) == pytest.approx(rate, rel=0.033)


def test_a_large_population_is_played_by_a_sample_with_room_for_groups() -> None:
    means = np.full((60_000, 2), 0.5)
    means[:, 1] = np.linspace(0.0, 1.0, 60_000)
    few = of_means(means, horizon=2, min_group_sizes=[2], policy="random", n_runs=2)
    assert few.config["sample"] == 10_000
    # Another sample in every run, and a fair one: the mean of 10,000 has a deviation of 0.003.
    assert few.full_knowledge == pytest.approx(0.625, abs=0.015)
    assert len(set(few.costs[0].runs)) == 2
    many = of_means(means, horizon=2, min_group_sizes=[2, 500], policy="random", n_runs=2)
    assert many.config["sample"] == 20_000
    own = of_means(means, horizon=2, min_group_sizes=[2], policy="random", n_runs=2, sample=300)
    assert own.config["sample"] == 300


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"min_group_sizes": [301]}, "min_group_size must be between 1 and n_users=300; got 301"),
        ({"min_group_sizes": []}, "min_group_sizes must name at least one"),
        ({"min_group_sizes": [0, 5]}, "min_group_sizes must be a whole number of .* 1; got 0"),
        ({"min_group_sizes": [5, 5]}, "min_group_sizes must differ"),
        ({"rate": 0.0}, "rate must be above 0 and at most 0.5; got 0.0"),
        ({"rate": float("nan")}, "rate must be above 0 and at most 0.5; got nan"),
        ({"rate": 0.7}, "rate must be above 0 and at most 0.5; got 0.7"),
        ({"rate": None}, "one of a rate, means and a population must be given; got none"),
        (
            {"means": [[0.5, 0.5]]},
            "one of a rate, means and a population must be given; got a rate and",
        ),
        ({"rate": None, "means": [[0.5]]}, "n_users must be .*, or be their number, 1; got 300"),
        ({"n_users": None}, "n_users must be a whole number of at least 1; got None"),
        ({"n_arms": 1}, "n_arms must be at least 2, for there to be a choice; got 1"),
        ({"horizon": 0}, "horizon must be a whole number of at least 1; got 0"),
        ({"n_runs": 1}, "n_runs must be a whole number of at least 2; got 1"),
        ({"at_least": 0}, "at_least must be a whole number of at least 1; got 0"),
        ({"sample": 10}, "sample must be between the largest min_group_size=20 and n_users=300"),
        ({"rewards": "bernouli"}, "did you mean 'bernoulli'"),
        ({"participation": 2}, "participation must be a number between 0 and 1; got 2"),
        ({"seed": -1}, "seed must be a whole number of at least 0; got -1"),
        ({"policy": "ucb"}, "policy must be one that learns from totals"),
        ({"policy": "best-arm"}, "policy must be one that learns from totals"),
    ],
)
def test_bad_input_is_refused_before_anything_is_played(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        small(engine=Idle(), **changes)


def test_a_whole_setting_is_priced_if_it_has_no_instances_of_its_own() -> None:
    changes: dict[str, Any] = {"policy": "random", "min_group_sizes": [2, 5]}
    problem: dict[str, Any] = {"n_users": 300, "n_arms": 3, "min_group_size": 4, "horizon": 30}
    answer = price(rate=0.2, setting=Setting(**problem), n_runs=3, engine=ONE, **changes).to_dict()
    assert answer == small(**changes).to_dict()
    means = uniform(300, 3, rng=np.random.default_rng(0))
    setting = Setting(**problem, instance="given")
    priced = price(means=means, setting=setting, n_runs=3, engine=ONE, **changes).to_dict()
    assert priced == of_means(means, **changes).to_dict()
    few = Setting(**problem | {"n_users": 200})
    with pytest.raises(InvalidInputError, match=r"n_users must be .* their number, 300; got 200"):
        price(means=means, setting=few, engine=Idle(), **changes)


def test_numbers_of_numpy_are_written_as_any_others() -> None:
    given = {name: np.int64(v) if isinstance(v, int) else v for name, v in SMALL.items()}
    given |= {"seed": np.int64(0), "sample": np.int64(300), "rate": np.float32(0.2)}
    json.dumps(small(**given, policy="random").to_dict())


def test_progress_names_what_has_finished() -> None:
    told: list[tuple[str, int, int]] = []
    small(policy="random", n_runs=2, progress=lambda *progress: told.append(progress))
    names = [f"groups of {size}, run {run}" for run in range(2) for size in (2, 20)]
    assert [finished for finished, _, _ in told if finished] == names
    assert told[-1][1:] == (4 * 30, 4 * 30)


def test_unknown_policies_and_options_are_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'shoal'"):
        small(policy="shoall")
    with pytest.raises(UnknownNameError, match="did you mean 'drift'"):
        small(options={"drft": 1})
    with pytest.raises(UnknownNameError, match=r"mean population=from_log\(log\)\.population\?"):
        small(log="log.csv")


def test_the_number_of_runs_grows_until_the_answer_is_stable() -> None:
    clear = small(policy="random", n_runs=None)  # never better than the best arm
    assert clear.config["n_runs"] == 9
    hurried = small(policy="random", n_runs=None, time_limit=0.0)
    assert hurried.config["n_runs"] == 5
    assert hurried.to_dict() == small(policy="random", n_runs=5).to_dict()
