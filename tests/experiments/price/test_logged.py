"""The price from a log: what the log does not know is in the interval.

Logs and seeds are fixed. docs/benchmarks/placebo.md has many more.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

from shoal.arrays import FloatArray
from shoal.engines import LocalEngine
from shoal.errors import InvalidInputError
from shoal.experiments import Price, Setting, price
from shoal.experiments.price.logged import choose_worlds, outlook
from shoal.instances import Population, from_log

ONE = LocalEngine(n_workers=1)
TASTES = np.where(np.arange(300)[:, None] % 3 == np.arange(3), 0.5, 0.1)


def rows_of(means: FloatArray, per_user: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(len(means)), per_user)
    arms = rng.integers(means.shape[1], size=len(users))
    rewards = rng.random(len(users)) < means[users, arms]
    return pl.DataFrame({"user": users, "arm": arms, "reward": rewards})


@cache
def population(*, taste: bool) -> Population:
    means = TASTES if taste else np.full((300, 3), 0.18)
    return from_log(rows_of(means, 40 if taste else 13, 0)).population


def priced(*, taste: bool, **changes: Any) -> Price:
    return price(
        population=population(taste=taste),
        **{"min_group_sizes": [5, 20], "horizon": 60, "n_runs": 5, "engine": ONE, **changes},
    )


@pytest.mark.slow
def test_a_placebo_log_gets_no_recommendation_and_no_gain() -> None:
    answer = priced(taste=False)
    assert answer.recommended is None
    assert all(cost.gain.low <= 0 for cost in answer.costs)
    assert all(cost.gain.mean < 0.01 * answer.best_arm for cost in answer.costs)
    assert "can't distinguish users who agree" in answer.notes[0]
    most = max(answer.costs, key=lambda cost: cost.gain.mean).min_group_size
    assert any(f"for C = {most} comes mostly from" in note for note in answer.notes)
    assert answer.recommendation.startswith(
        "Show everyone the best single arm for now: this log can't tell whether users differ; "
        "within 60 rounds, learning from groups of at least 5 or 20 users is not shown to earn more"
    )
    assert answer.bands["full_knowledge"].low <= answer.bands["best_arm"].high


@pytest.mark.slow
def test_tastes_that_the_log_shows_are_priced_and_the_truth_lies_inside() -> None:
    answer = priced(taste=True)
    assert answer.recommended is not None
    truth = price(
        means=TASTES, min_group_sizes=[5, 20], horizon=60, n_runs=3, engine=ONE
    )  # fmt: skip
    for said, found in zip(answer.costs, truth.costs, strict=True):
        assert said.gain.low <= found.gain.mean <= said.gain.high
        assert 0.0 <= said.reward.low <= said.reward.high <= 1.0
        assert -1.0 <= said.share.low <= said.share.high <= 1.0


def test_two_runs_of_a_log_with_tastes_are_too_few_to_tell() -> None:
    people = population(taste=True)
    assert people.shows_tastes
    possible = np.array([people.gain.low, people.gain.high])
    references = np.column_stack([np.full(2, 0.2), 0.2 + possible, np.full(2, 0.2)])
    rewards = np.array([[[0.25], [0.32]], [[0.15], [0.16]]])
    answer = Price.from_rewards([5, 20], rewards, references, np.array([60]), {}, population=people)
    assert answer.recommended is None
    assert answer.recommendation.startswith("Undecided: 2 runs are too few to tell")
    assert answer.recommendation.endswith("Play more: n_runs=6, or leave n_runs out.")
    assert "mostly from chance in the simulation; more runs narrow it by" in answer.notes[2]
    doubted = replace(answer, population=replace(people, doubts=("Arms were chosen by users.",)))
    assert doubted.recommendation.startswith(
        "As long as the doubts about this log (in the notes) stand, show everyone the best single "
        "arm. Without them, the answer is undecided: 2 runs are too few to tell"
    )
    for cost in answer.costs:  # all columns have one centre
        assert cost.reward.mean == pytest.approx(answer.best_arm + cost.gain.mean)
        assert answer.costs[0].reward.mean - cost.reward.mean == pytest.approx(cost.loss.mean)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answer_whatever_the_workers() -> None:
    answer = priced(taste=True, policy="random").to_dict()
    assert answer == priced(taste=True, policy="random", engine=LocalEngine(n_workers=2)).to_dict()


def test_more_users_than_the_log_has_can_be_priced() -> None:
    answer = priced(taste=True, policy="random", n_users=2_000)
    assert (answer.config["n_users"], answer.config["sample"]) == (2_000, 2_000)
    with pytest.raises(InvalidInputError, match="n_arms must be left out beside a population"):
        priced(taste=True, n_arms=4)


def test_a_population_is_priced_with_the_users_of_a_whole_setting() -> None:
    setting = Setting(n_users=60, n_arms=3, min_group_size=4, horizon=5)
    answer = priced(taste=True, policy="random", setting=setting)
    assert (answer.config["n_users"], answer.config["sample"]) == (60, 60)
    rule = "n_arms must be left out beside a population, or be its number, 3; got 2"
    with pytest.raises(InvalidInputError, match=rule):
        priced(taste=True, setting=replace(setting, n_arms=2))


def test_the_first_runs_already_span_what_the_log_allows() -> None:
    people = population(taste=False)
    gains = [people.worlds[place].gain for place in choose_worlds(people, 5)]
    assert gains[0] == pytest.approx(people.gain.low)
    assert gains[1] == pytest.approx(people.gain.high)
    assert gains[0] < gains[2] < gains[1]
    assert choose_worlds(people, 9)[:5] == choose_worlds(people, 5)


def width_note(n_runs: int, *, noise: float, sizes: tuple[int, ...] = (20,)) -> str:
    """Return the sentence on the width, of runs around half of the gain that is possible."""
    people, best = population(taste=True), 0.24
    possible = np.linspace(people.gain.low, people.gain.high, n_runs)
    luck = noise * np.random.default_rng(0).standard_normal((len(sizes), n_runs))
    rewards = best + 0.5 * possible + luck - 0.2 * np.arange(len(sizes))[:, None]
    bests = np.full(n_runs, best)
    references = np.column_stack([bests, bests + possible, bests])
    answer = Price.from_rewards(
        sizes, rewards[..., None], references, np.array([60]), {}, population=people
    )
    return next(note for note in answer.notes if note.startswith("The width of the interval"))


def test_the_width_is_laid_to_what_would_narrow_it() -> None:
    assert "how much users differ, which only more rows can tell" in width_note(9, noise=1e-6)
    few, many = (width_note(n, noise=0.02) for n in (9, 120))
    assert "chance in the simulation; more runs narrow it by up to " in few
    assert many.endswith("the luck of a single campaign, which more runs hardly narrow.")


def test_the_width_is_that_of_the_size_that_is_judged() -> None:
    assert "for C = 20 " in width_note(9, noise=0.02, sizes=(2, 20))


def test_the_check_on_rows_held_out_explains_its_unit() -> None:
    answer = priced(taste=True, n_runs=2, horizon=5)
    assert "nats per 1,000 rows). Nats are units of log-likelihood" in answer.notes[1]


def test_the_interval_joins_the_log_with_luck() -> None:
    people = population(taste=True)
    possible = np.linspace(people.gain.low, people.gain.high, 5)
    exact = outlook(people, possible, 0.5 * possible - 0.01)
    assert exact.luck == pytest.approx(0.0, abs=1e-9)
    for end in ("low", "high"):
        assert getattr(exact.gain, end) == pytest.approx(0.5 * getattr(people.gain, end) - 0.01)
    noise = np.array([0.01, -0.01, 0.0, 0.01, -0.01])
    two = outlook(people, possible[[0, -1]], 0.5 * possible[[0, -1]])
    assert two.luck > 0.01  # a line through two points would leave none
    wild = outlook(people, possible, np.array([0.9, -0.9, 0.9, -0.9, 0.9]))
    assert wild.gain.high <= people.gain.high
    assert wild.gain.low >= -1.0
    lucky = outlook(people, possible, 0.5 * possible - 0.01 + noise)
    assert lucky.luck > 0.01
    assert lucky.gain.half > exact.gain.half


@pytest.mark.slow
def test_rewards_on_a_scale_are_played_as_such_from_python_too() -> None:
    """Unless the caller says otherwise; where their variance is far off, a note says so."""
    rng = np.random.default_rng(5)
    users, arms = np.arange(3_000) % 100, np.arange(3_000) // 100 % 3
    euros = rng.normal(np.where(users % 3 == arms, 26.0, 20.0), 2.0)
    log = from_log(pl.DataFrame({"user": users, "arm": arms, "reward": euros}), scale="range")
    assert log.population.rewards == "bounded"
    arguments: dict[str, Any] = {
        "population": log.population, "horizon": 20, "min_group_sizes": [5], "n_runs": 2,
        "engine": LocalEngine(n_workers=1),
    }  # fmt: skip
    answer = price(**arguments)
    assert answer.config["rewards"] == "bounded"
    assert answer.costs[0].homogeneous is None
    assert any("times the variance of the log's rows" in note for note in answer.notes)
    assert price(**arguments, rewards="bernoulli").config["rewards"] == "bernoulli"


def test_percentages_are_those_of_the_logs_own_units() -> None:
    """The favourite arm gives 96 points and the others 94: full knowledge earns 1.4 % more."""
    rng = np.random.default_rng(0)
    users, arms = rng.integers(200, size=8_000), rng.integers(3, size=8_000)
    points = np.clip(np.round(94 + 2 * (users % 3 == arms) + rng.normal(0, 1, 8_000)), 90, 100)
    scores = from_log(
        pl.DataFrame({"user": users, "arm": arms, "reward": points}), scale="range"
    ).population
    assert "1.4% more than the best single arm could be earned (1.3% to 1.5%)" in scores.tells
    answer = price(
        population=scores, min_group_sizes=5, horizon=5, n_runs=2, participation=0.5, engine=ONE
    )
    least, most = points.min(), points.max()
    assert answer.to_dict()["scale"] == {"zero": least, "one": most}
    assert f"0 stands for {least:g} and 1 for {most:g}. Percentages are" in answer.notes[0]
    best = least + (most - least) * answer.best_arm
    gain = (most - least) * answer.costs[0].gain.mean
    assert answer.gain_in_words(answer.costs[0]).startswith(f"{gain / best:z.1%} (")


def test_a_recommendation_from_a_log_in_doubt_depends_on_it() -> None:
    answer = priced(taste=True)
    assert answer.recommendation.startswith("Use groups of at least 5 users")
    doubted = replace(population(taste=True), doubts=("Users did not see all arms alike.",))
    assert replace(answer, population=doubted).recommendation.startswith(
        "Only if the doubts about this log (in the notes) can be ruled out: use groups of at least "
        "5 users"
    )


def test_the_best_single_arm_is_the_answer_as_long_as_a_log_is_in_doubt() -> None:
    answer = priced(taste=False)
    assert answer.recommended is None
    assert answer.to_dict()["doubts"] == []
    doubted = replace(population(taste=False), doubts=("Users did not see all arms alike.",))
    answer = replace(answer, population=doubted)
    assert answer.recommendation.startswith(
        "As long as the doubts about this log (in the notes) stand, show everyone the best single "
        "arm"
    )
    assert answer.to_dict()["doubts"] == ["Users did not see all arms alike."]
