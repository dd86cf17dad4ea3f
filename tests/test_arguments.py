"""A bad argument is refused by name, rule and value, in one line, wherever it is given."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
import pytest
from tests.support.calls import (
    MEANS,
    PROBLEM,
    RULES,
    Call,
    Configuration,
    Problem,
    Setting,
    clustered,
    compared,
    frame,
    make_policy,
    make_shoal,
    price,
    priced,
    rng,
    simulate,
    tune,
)

from shoal.errors import InvalidInputError, ShoalError

BAD: dict[str, tuple[Call, str]] = {
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
}


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
