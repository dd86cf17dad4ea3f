"""A bad argument of a policy, a plan, an instance or a roster is refused by name and value."""

from __future__ import annotations

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest
from tests.support.calls import (
    COMMON,
    EXTENDED,
    MAB,
    MEANS,
    PROBLEM,
    RNG,
    RULES,
    Call,
    Feedback,
    Plan,
    Problem,
    Roster,
    asked,
    asked_to_explore,
    clustered,
    compared,
    decompose,
    environment,
    frame,
    linear,
    lower_bound,
    make_policy,
    plan,
    price,
    priced,
    random_play,
    rng,
    simulate,
    uniform,
)

from shoal.errors import InvalidInputError, ShoalError
from shoal.model import Stateful
from shoal.policies.baselines import RandomPlay

BAD: dict[str, tuple[Call, str]] = {
    # A seed in place of a generator.
    "a policy's rng": (lambda: make_policy("shoal", PROBLEM, rng=0), RNG + "0"),
    "a class's rng": (lambda: random_play(PROBLEM, rng=0), RNG + "0"),
    "an environment's rng": (lambda: environment(rng=None), RNG + "None"),
    "an instance's rng": (lambda: uniform(6, 2, rng=7), RNG + "7"),
    "a hard instance's rng": (lambda: lower_bound("too-few-users", rng=0), RNG + "0"),
    "another hard instance's rng": (lambda: lower_bound("no-clusters", gap=0.1, rng=0), RNG + "0"),
    "what users share": (lambda: uniform(6, 2, rng=rng(), common=3), COMMON + "3"),
    "what linear users share": (lambda: linear(6, 2, rng=rng(), common=3), COMMON + "3"),
    "what clusters share": (lambda: clustered(6, 2, rng=rng(), common=0), COMMON + "0"),
    "a decomposition's rng": (
        lambda: decompose([[True]] * 4, 2, min_crowd=2, rng=1),
        RNG + "1",
    ),
    # Something else in place of a type.
    "a list to tell": (lambda: asked().tell([1.0, 2.0]), r"feedback must be a Feedback.*\[1.0"),
    "a list as a plan": (lambda: environment().play([0, 1]), r"plan must be a Plan; got \[0, 1\]"),
    "a dict as a problem": (
        lambda: make_policy("random", {"n_users": 6}, rng=rng()),
        "problem must be a Problem; got",
    ),
    "a plan's problem": (lambda: Plan([0], [0], problem=None), "problem must be a Problem"),
    "a dict as a setting": (
        lambda: simulate("random", setting={"horizon": 5}),
        "setting must be a Setting; got",
    ),
    "options that are a list": (
        lambda: simulate("random", MEANS, options=["gamma"], **RULES),
        r"options must be a mapping of names to values; got \['gamma'\]",
    ),
    "an instance beside a rate": (
        lambda: priced(instance="linear"),
        "instance must be left out of price, which has a rate; got 'linear'",
    ),
    "one size beside several": (
        lambda: priced(min_group_size=999),
        "min_group_size must be left out of price, which has min_group_sizes; got 999",
    ),
    "a log as a population": (
        lambda: price(population=[1], horizon=5, min_group_sizes=[5]),
        r"population must be a Population, such as from_log\(...\).population; got \[1\]",
    ),
    "a truth value as progress": (
        lambda: compared(instances="uniform", n_users=6, n_arms=2, progress=True),
        r"progress must be a function of \(finished, done, total\); got True",
    ),
    "means with gaps": (
        lambda: simulate("random", np.ma.masked_greater(MEANS, 0.4), **RULES),
        "means must be complete; got an array with masked entries",
    ),
    "a state that is not there": (
        lambda: type("Mine", (RandomPlay,), {"changing": EXTENDED})(PROBLEM, rng=rng()).state(),
        "changing must name attributes of Mine; got 'best', which it does not have",
    ),
    "nothing as a state": (
        lambda: asked().restore(None),
        r"state must be what RandomPlay.state\(\) returned, with 'pending'; got None",
    ),
    "an empty state": (
        lambda: asked().restore({"pending": None}),
        "with 'rng'; got {'pending': None}",
    ),
    "the state of more users": (
        lambda: asked().restore(random_play(Problem(9, 2, 3), rng=rng()).state()),
        "n_users in the state must be that of the policy's problem, 6; got 9",
    ),
    "the state of larger groups": (
        lambda: asked().restore(random_play(Problem(6, 2, 4), rng=rng()).state()),
        "min_group_size in the state must be that of the policy's problem, 3; got 4",
    ),
    "a number as a policy": (lambda: simulate(3, MEANS, **RULES), "policy must be a known .*got 3"),
    "a class that is no policy": (
        lambda: simulate(Stateful, MEANS, **RULES),
        "a subclass of shoal.policies.Policy",
    ),
    "a function that makes none": (
        lambda: simulate(lambda problem, *, rng: 5, MEANS, **RULES),
        "policy must make a shoal.policies.Policy; got 5",
    ),
    # Feedback and rewards.
    "totals of strings": (
        lambda: Feedback(["a"], [1], [1] * 6),
        r"feedback.totals must be an array of numbers; got \['a'\]",
    ),
    "broken counts": (
        lambda: Feedback([1.0], [0.5], [1] * 6),
        r"feedback.released must be an array of whole numbers; got \[0.5\]",
    ),
    "a total that is NaN": (
        lambda: asked_to_explore().tell(Feedback([np.nan], [1], [1] * 6)),
        "feedback must have|total of group 0 must be",
    ),
    "a whole number as a float": (
        lambda: Problem(6, 2, 2, horizon=1e2),
        "horizon must be a whole number of at least 1; got 100.0. Write 100.",
    ),
    "a reward that is NaN": (
        lambda: plan().add_up({0: float("nan")}),
        "the reward of user 0 must be a number between 0 and 1; got nan. Leave out users who have",
    ),
    "a reward that is None": (
        lambda: plan().add_up([(2, None)]),
        "reward of user 2.* got None. Leave out users who have not reacted",
    ),
    "a gap in a frame": (
        lambda: plan().add_up(pd.DataFrame({"user": [0, 1], "reward": [1.0, None]})),
        "reward of user 1.* Leave out users who have not reacted",
    ),
    "an id without a roster": (lambda: plan().add_up({"ana": 1}), "user must be a number .*'ana'"),
    "a user who is not there": (lambda: plan().add_up({6: 1}), "n_users-1=5; got 6"),
    "a user twice": (lambda: plan().add_up([(1, 1), (1, 0)]), "must name each user once"),
    "a user twice in a frame": (
        lambda: plan().add_up(pd.DataFrame({"user": [0, 0, 1], "reward": [1, 0, 1]})),
        "must name each user once; got 0 again",
    ),
    "a user twice in a frame of polars": (
        lambda: plan().add_up(pl.DataFrame({"user": [0, 0, 1], "reward": [1, 0, 1]})),
        "must name each user once; got 0 again",
    ),
    "rounds in one list": (
        lambda: plan().add_up([{0: 1.0, 1: 0.0}, {0: 0.0, 1: 0.0}]),
        r"each round's as an argument of its own: add_up\(\*rounds\)",
    ),
    "one round of two": (
        lambda: Plan([0] * 6, [0] * 6, 2, problem=Problem(6, 2, 2)).add_up({}),
        r"2 in all; got 1. Give each .* of its own, or .* policy.ask\(max_repeats=1\)",
    ),
    "no round at a time": (
        lambda: asked_to_explore().ask(max_repeats=0),
        "max_repeats must be a whole number of at least 1; got 0",
    ),
    "rewards that are one number": (lambda: plan().add_up(5), "rewards must be a mapping.*got 5"),
    "one round too many": (
        lambda: plan().add_up({}, {}),
        "each round of the plan, 1 in all; got 2",
    ),
    "a frame of three columns": (
        lambda: plan().add_up(frame(c=0.5)),
        r"rewards must have two columns, user and reward; got \['a', 'b', 'c'\]",
    ),
    # Rosters and the adapter.
    "a string of users": (lambda: Roster("abc", arms=["x"]), "users must be a list of ids"),
    "a user joins twice": (lambda: Roster([1, 1], arms=["x"]), "user must join once; got 1 again"),
    "a stranger": (lambda: Roster([1], arms=["x"]).seat("z"), "on the roster; got 'z'"),
    "a decision of no arm": (
        lambda: MAB(["x"], "random", users=range(4), min_group_size=2).fit(["y"], [1], [0]),
        r"decisions must be of arms=\['x'\]; got 'y'",
    ),
    "columns of two lengths": (
        lambda: MAB(["x"], "random", users=range(4), min_group_size=2).fit(["x"], [1, 0], [0]),
        "decisions, rewards and users must match; got",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_an_object_cannot_take_is_refused_by_name_rule_and_value(name: str) -> None:
    call, message = BAD[name]
    with pytest.raises(ShoalError, match=message) as refusal:
        call()
    assert isinstance(refusal.value, InvalidInputError)
    assert "\n" not in str(refusal.value)
