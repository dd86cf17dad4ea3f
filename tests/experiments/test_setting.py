from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from shoal.engines import LocalEngine
from shoal.errors import InvalidInputError, UnknownNameError
from shoal.experiments import Setting, compare, simulate, simulate_shards
from shoal.experiments.setting import PAPER_SETTING, SettingOptions, make_setting

HERE = LocalEngine(n_workers=1)
SMALL: dict[str, Any] = {"n_users": 12, "n_arms": 3, "min_group_size": 2, "horizon": 50}


def test_the_keyword_arguments_are_the_fields() -> None:
    assert list(SettingOptions.__annotations__) == ["setting", *(f.name for f in fields(Setting))]


def test_equal_settings_have_equal_hashes_whatever_the_kind_of_number() -> None:
    setting = Setting(**SMALL)
    numbers: dict[str, Any] = {name: np.int64(value) for name, value in SMALL.items()}
    same = Setting(**numbers)
    assert setting == same
    assert hash(setting) == hash(same)
    assert str(setting) == str(same)
    assert setting == pickle.loads(pickle.dumps(setting))
    assert setting != Setting(**SMALL, seed=1)


def test_a_participation_for_each_user_is_kept_as_a_tuple() -> None:
    setting = Setting(**SMALL, participation=np.array([0.5, 1.0]))
    assert setting.participation == (0.5, 1.0)
    assert isinstance(hash(setting), int)


def test_named_fields_change_a_whole_setting() -> None:
    setting = Setting(**SMALL, rewards="gaussian")
    assert make_setting({"setting": setting, "seed": 3}, horizon=7) == Setting(
        **{**SMALL, "horizon": 7}, rewards="gaussian", seed=3
    )


def test_options_of_the_instances_are_passed_on() -> None:
    low = Setting(**SMALL, instance="clustered", instance_options={"rate": 0.01})
    high = Setting(**SMALL, instance="clustered", instance_options={"rate": 0.4})
    assert low.draw().mean() < high.draw().mean()
    assert low.as_json()["instance_options"] == {"rate": 0.01}
    assert "instance_options" not in Setting(**SMALL).as_json()


def test_each_run_and_each_purpose_has_means_of_its_own() -> None:
    setting = Setting(**SMALL, instance="clustered")
    drawn = [setting.draw(), setting.draw(1)]
    drawn += [setting.draw(purpose=purpose) for purpose in ("validation", "price", "shard")]
    assert len({means.tobytes() for means in drawn}) == len(drawn)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n_users": 0}, InvalidInputError, "n_users must be a whole number of at least 1; got 0"),
        ({"min_group_size": 13}, InvalidInputError, "between 1 and n_users=12; got 13"),
        ({"horizon": 2.5}, InvalidInputError, "horizon must be a whole number of at least 1"),
        ({"rewards": "bernouli"}, UnknownNameError, "did you mean 'bernoulli'"),
        ({"participation": 1.5}, InvalidInputError, "participation must be a number between 0"),
        ({"seed": -1}, InvalidInputError, "seed must be a whole number of at least 0; got -1"),
        ({"instance": "liner"}, UnknownNameError, "did you mean 'linear'"),
    ],
)
def test_bad_settings_are_refused(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Setting(**{**SMALL, **change})


def test_means_in_place_of_an_instance_are_refused() -> None:
    means = np.full((12, 3), 0.5)
    wrong: dict[str, Any]
    for wrong in ({"instance": means}, {"instances": means}, {"instances": [means]}):
        with pytest.raises(InvalidInputError, match=r"your own are given as means=\.\.\.; got"):
            compare(policies="random", horizon=10, n_runs=1, **wrong)


def test_an_unknown_option_of_an_instance_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"option of instance 'clustered' .*'n_clusters'"):
        replace(PAPER_SETTING, instance="clustered", instance_options={"clusters": 3})
    with pytest.raises(UnknownNameError, match=r"option of instance 'given' .*: there are none"):
        Setting(**SMALL, instance="given", instance_options={"rate": 0.1})


@pytest.mark.parametrize("options", [None, "x", 3])
def test_options_of_an_instance_must_be_a_mapping(options: Any) -> None:
    rule = "instance_options must be a mapping of names to values; got "
    with pytest.raises(InvalidInputError, match=rule + repr(options)):
        Setting(**SMALL, instance_options=options)


def test_means_of_ones_own_can_not_be_drawn() -> None:
    setting = Setting(**SMALL, instance="given")
    draws: list[Callable[[], Any]] = [
        setting.draw,
        lambda: simulate("random", setting=setting),
        lambda: simulate_shards("random", n_shards=2, setting=setting),
        lambda: compare(policies="random", n_runs=1, setting=setting),
    ]
    for draw in draws:
        with pytest.raises(
            UnknownNameError, match=r"instance must be .* 'given': .* means=\.\.\. "
        ):
            draw()


def test_a_whole_setting_beside_means_must_be_theirs() -> None:
    wrong, right = Setting(**SMALL), Setting(**SMALL | {"n_users": 5}, instance="given")
    shared: dict[str, Any] = {"policies": "random", "n_runs": 1, "engine": HERE}
    means = np.full((5, 3), 0.5)
    rule = "n_users must be left out beside means, or be their number, 5; got 12"
    for play in (partial(simulate, "random", means), partial(compare, means=means, **shared)):
        with pytest.raises(InvalidInputError, match=rule):
            play(setting=wrong)
        play(setting=wrong, n_users=5)
        play(setting=right)
    drawn = replace(right, instance="clustered", instance_options={"rate": 0.3})
    with pytest.raises(InvalidInputError, match="instance_options must be left out beside means"):
        simulate("random", means, setting=drawn)
    with pytest.raises(InvalidInputError, match="instance must be left out beside means; got 'cl"):
        compare(means=means, setting=drawn, **shared)
