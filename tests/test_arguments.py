"""A bad argument is refused by name, rule and value, in one line, wherever it is given."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest

import shoal
import shoal.experiments.tune as tuning
from shoal import environments, experiments, instances, mab
from shoal.engines import LocalEngine
from shoal.errors import InvalidInputError, ShoalError
from shoal.experiments.sweep import configuration
from shoal.model import Stateful
from shoal.policies import shoal as flagship
from shoal.policies.baselines import RandomPlay

# The calls are wrong on purpose, and no type checker is to say so.
Feedback: Any = shoal.Feedback
Plan: Any = shoal.Plan
Problem: Any = shoal.Problem
Roster: Any = shoal.Roster
MAB: Any = mab.MAB
compare: Any = shoal.compare
decompose: Any = shoal.decompose
make_environment: Any = environments.make_environment
make_policy: Any = shoal.make_policy
price: Any = shoal.price
simulate: Any = shoal.simulate
clustered: Any = instances.clustered
linear: Any = instances.linear
lower_bound: Any = instances.lower_bound
uniform: Any = instances.uniform
random_play: Any = RandomPlay
make_shoal: Any = flagship.make_shoal
Configuration: Any = configuration.Configuration
Setting: Any = experiments.Setting
tune: Any = tuning.tune

PROBLEM = Problem(n_users=6, n_arms=2, min_group_size=3)
MEANS = np.full((6, 2), 0.5)
HERE = LocalEngine(n_workers=1)
RULES: dict[str, Any] = {"min_group_size": 3, "horizon": 10}
Call = Callable[[], Any]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def plan() -> Any:
    return Plan([0] * 3 + [1] * 3, [0] * 3 + [1] * 3, problem=PROBLEM)


def asked() -> Any:
    policy = make_policy("random", PROBLEM, rng=rng())
    policy.ask()
    return policy


def environment(**more: Any) -> Any:
    return make_environment("bernoulli", PROBLEM, **{"means": MEANS, "rng": rng()} | more)


def frame(**more: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": [0.1] * 6, "b": [0.9] * 6, **more})


def priced(**more: Any) -> Any:
    known: dict[str, Any] = {"rate": 0.2, "n_users": 40, "n_arms": 2, "horizon": 5, "n_runs": 2}
    known |= {"min_group_sizes": [5], "policy": "random", "engine": HERE}
    return price(**known | more)


def compared(**more: Any) -> Any:
    return compare(**{"policies": ["random"], "n_runs": 1, "engine": HERE} | RULES | more)


EXTENDED = (*RandomPlay.changing, "best")
RNG = r"rng must be a numpy.random.Generator, such as np.random.default_rng\(0\); got "
COMMON = RNG.replace("rng", "common", 1)
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
    # Numbers that are none.
    "a string as the horizon": (
        lambda: simulate("random", MEANS, min_group_size=3, horizon="10"),
        "horizon must be a whole number of at least 1; got '10'",
    ),
    "a horizon that is missing": (
        lambda: simulate("random", MEANS, min_group_size=3),
        "horizon must be given, a whole number of at least 1",
    ),
    "a misspelt argument": (
        lambda: simulate("random", MEANS, min_group_size=3, horizn=5),
        "argument of simulate must be a known name; got 'horizn': did you mean 'horizon'",
    ),
    "rounds": (
        lambda: compared(rounds=5),
        "argument of compare .* got 'rounds': did you mean horizon\\? Known: engine, horizon, ",
    ),
    "runs": (lambda: compared(runs=2), "got 'runs': did you mean n_runs\\? Known: .*n_runs"),
    "workers": (
        lambda: priced(workers=1),
        r"argument of price .* did you mean engine=LocalEngine\(n_workers=...\)\? Known: at_least",
    ),
    "an engine's name": (
        lambda: compared(engine="ray"),
        r"engine must be an Engine, such as LocalEngine\(n_workers=2\).*; got 'ray'",
    ),
    "users of other means": (
        lambda: simulate("random", MEANS, n_users=50, **RULES),
        "n_users must be left out beside means, or be their number, 6; got 50",
    ),
    "arms of other means": (
        lambda: compared(means=MEANS, n_arms=3),
        "n_arms must be left out beside means, or be their number, 2; got 3",
    ),
    "a truth value as a count": (
        lambda: Problem(n_users=True, n_arms=2, min_group_size=1),
        "n_users must be a whole number of at least 1; got True",
    ),
    "a word as bounded": (
        lambda: Problem(20, 3, 4, bounded="no"),
        "bounded must be true or false; got 'no'",
    ),
    "a guarantee for many users": (
        lambda: make_shoal(Problem(300, 2, 3, 50), rng=rng(), guarantee=True),
        "shards of more than 256 users; got drift=0.0 and 300 users",
    ),
    "a fraction of a user": (
        lambda: Problem(np.float64(2.5), 2, 1),
        "n_users must be a whole number of at least 1; got np.float64",
    ),
    "NaN as an option": (
        lambda: simulate("explore-then-commit", MEANS, options={"exploration": np.nan}, **RULES),
        "exploration must be a positive number; got nan",
    ),
    "a string as an option": (
        lambda: simulate("shoal", MEANS, options={"drift": "much"}, **RULES),
        "drift must be a number of at least 0; got 'much'",
    ),
    "an option that is no name": (
        lambda: simulate("random", MEANS, options={1: 2}, **RULES),
        "option of 'random' must be a known name; got 1",
    ),
    "a word as a truth value": (
        lambda: simulate("shoal", MEANS, options={"guarantee": "false"}, **RULES),
        "guarantee must be true or false; got 'false'",
    ),
    "a partial's word as a truth value": (
        lambda: make_policy(partial(make_shoal, guarantee="off"), PROBLEM, rng=rng()),
        "guarantee must be true or false; got 'off'",
    ),
    "a number as a truth value": (
        lambda: compared(policies="elimination-lp", options={"elimination-lp": {"robust": 0}}),
        "robust must be true or false; got 0",
    ),
    "untuned in words": (
        lambda: simulate("random", MEANS, tuned="no", **RULES),
        "tuned must be true or false; got 'no'",
    ),
    "a sweep that is untuned in words": (
        lambda: Configuration(policies="random", tuned="no"),
        "tuned must be true or false; got 'no'",
    ),
    "a sweep of nothing": (
        lambda: Configuration(policies=[]),
        "policies must have at least one value; got none",
    ),
    "a sweep without arms": (
        lambda: Configuration(policies="random", arms=()),
        "arms must have at least one value; got none",
    ),
    "an option of a policy that has none": (
        lambda: simulate("random", MEANS, options={"gamma": 2}, **RULES),
        "option of 'random' must be a known name; got 'gamma': there are none",
    ),
    "NaN as participation": (
        lambda: simulate("random", MEANS, participation=np.nan, **RULES),
        "participation must be a number between 0 and 1; got nan",
    ),
    "a string as a rate": (lambda: priced(rate="0.2"), "rate must be above 0 and at most 0.5"),
    "a string as a limit": (lambda: priced(time_limit="1m"), "time_limit must be a number of .*1m"),
    "a string as a spread": (
        lambda: clustered(6, 2, rng=rng(), spread="wide"),
        "spread must be finite and at least 0; got 'wide'",
    ),
    "a string of sizes": (
        lambda: priced(min_group_sizes="5,10"),
        "min_group_sizes must be a whole number of at least 1; got '5,10'",
    ),
    "a size that is a float": (
        lambda: priced(min_group_sizes=[5.0]),
        "min_group_sizes must be a whole number of at least 1; got 5.0. Write 5",
    ),
    "a single size that is a float": (
        lambda: priced(min_group_sizes=5.0),
        "min_group_sizes must be a whole number of at least 1; got 5.0. Write 5",
    ),
    "no sizes": (
        lambda: price(rate=0.2, n_users=40, n_arms=2, horizon=5),
        "min_group_sizes must be a whole number of at least 1; got None",
    ),
    "sizes under the name of one": (
        lambda: price(rate=0.2, n_users=40, n_arms=2, horizon=5, min_group_size=[2, 5]),
        r"min_group_size must be left out of price, which has min_group_sizes; got \[2, 5\]",
    ),
    "a whole setting's instance beside a rate": (
        lambda: priced(setting=Setting(**RULES, n_users=40, n_arms=2, instance="linear")),
        "instance must be left out of price, which has a rate; got 'linear'",
    ),
    "a whole setting's instance beside means": (
        lambda: price(
            means=MEANS,
            min_group_sizes=2,
            setting=Setting(**RULES, n_users=6, n_arms=2, instance="linear"),
        ),
        "instance must be left out of price, which has means; got 'linear'",
    ),
    "means that a rate does not have": (
        lambda: priced(setting=Setting(**RULES, n_users=40, n_arms=2, instance="given")),
        "instance must be left out of price, which has a rate; got 'given'",
    ),
    "options of instances beside a rate": (
        lambda: priced(instance_options={"rate": 0.3}),
        "instance_options must be left out of price, which has a rate; got {'rate': 0.3}",
    ),
    # Means.
    "means with NaN": (
        lambda: simulate("random", np.where(np.eye(6, 2), np.nan, 0.5), **RULES),
        "the mean of user 0 on arm 0 must be between 0 and 1 for bernoulli rewards; got nan",
    ),
    "means of strings": (
        lambda: simulate("random", [["a", "b"]] * 6, **RULES),
        "means must be numbers of shape",
    ),
    "ragged means": (
        lambda: simulate("random", [[0.5], [0.5, 0.5]], **RULES),
        "means must be an array; got rows of different lengths",
    ),
    "a frame with a column of ids": (
        lambda: simulate("random", frame(user=list("abcdef")), **RULES),
        "every column of means must hold numbers; got String in column 'user'",
    ),
    "a frame with a gap": (
        lambda: compared(means=pl.DataFrame({"a": [0.5] * 5 + [None], "b": [0.5] * 6})),
        "the mean of user 5 on arm 0 must be between 0 and 1 for bernoulli rewards; got nan",
    ),
    # Lists of policies and instances.
    "the same policy twice": (
        lambda: compared(policies=["random", "random"]),
        r"policies must differ; got \['random', 'random'\]",
    ),
    "a list as the options of policies": (
        lambda: compared(options=[1]),
        r"options must be a mapping of policies to their options; got \[1\]",
    ),
    "no options of a policy": (
        lambda: compared(options={"random": None}),
        "options of 'random' must be a mapping of names to values; got None",
    ),
    "a list as the options of a sweep": (
        lambda: Configuration(policies="random", options=[1]),
        r"options must be a mapping of policies to their options; got \[1\]",
    ),
    "options of a policy that is not played": (
        lambda: compared(options={"elimination-lp": {"gamma": 3}}),
        "policy with options must be one of those that are played, random; got 'elimination-lp'",
    ),
    "no policies": (
        lambda: compared(policies=None),
        "policies must be a name or a list of them; got None",
    ),
    "a number as instances": (
        lambda: compared(instances=3),
        "instances must be a name or a list of them; got 3",
    ),
    "no policies to tune": (
        lambda: tune(policies=None),
        "policies must be a name or a list of them; got None",
    ),
    "a list in the policies to tune": (lambda: tune(policies=[["x"]]), "policy must be a known"),
    "a number as instances to tune on": (
        lambda: tune(instances=3),
        "instances must be a name or a list of them; got 3",
    ),
    "instance beside instances": (
        lambda: compared(instance="linear", instances=["uniform"]),
        "instance must be left out beside instances; got 'linear'",
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


def asked_to_explore() -> Any:
    policy = make_policy("explore-then-commit", Problem(6, 2, 3, 50), rng=rng())
    policy.ask()
    return policy


@pytest.mark.parametrize("name", BAD)
def test_a_bad_argument_is_refused_by_name_rule_and_value(name: str) -> None:
    call, message = BAD[name]
    with pytest.raises(ShoalError, match=message) as refusal:
        call()
    assert isinstance(refusal.value, InvalidInputError)
    assert "\n" not in str(refusal.value)


def test_numpys_numbers_and_frames_are_as_good_as_pythons() -> None:
    options = {"exploration": np.float32(0.25)}
    sizes = {"min_group_size": np.int64(3), "horizon": np.int32(10), "participation": np.float32(1)}
    frames = [frame(), pl.from_pandas(frame()), pl.from_pandas(frame()).lazy(), frame().to_numpy()]
    runs = [simulate("explore-then-commit", means, options=options, **sizes) for means in frames]
    assert runs[0].options == {"exploration": 0.25}
    assert type(runs[0].options["exploration"]) is float
    assert all(np.array_equal(run.curves, runs[0].curves) for run in runs)
    assert compared(policies="random", instance="linear").config["instances"] == ["linear"]
