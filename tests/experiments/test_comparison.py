from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats
from tests.support.policies import Greedy

from shoal import __version__
from shoal.engines import LocalEngine
from shoal.errors import InvalidInputError, ShoalError, UnknownNameError
from shoal.experiments import Comparison, Setting, compare, price, simulate
from shoal.experiments.cells import Cell
from shoal.experiments.comparison import new_folder
from shoal.figures import regret_figures, save
from shoal.policies.tuned import tuned_options

SMALL: dict[str, Any] = {
    "policies": ["elimination-greedy", "random"],
    "n_users": 12,
    "n_arms": 3,
    "min_group_size": 2,
    "horizon": 300,
    "n_runs": 4,
}
HERE = LocalEngine(n_workers=1)


class Idle(LocalEngine):
    """An engine that nobody may use."""

    def run(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("a worker was started")


@pytest.mark.slow
def test_the_records_do_not_depend_on_the_number_of_workers() -> None:
    one = compare(**SMALL, engine=HERE)
    two = compare(**SMALL, engine=LocalEngine(n_workers=2))
    assert one.records.equals(two.records)


def test_every_policy_meets_the_same_instances() -> None:
    both = compare(**SMALL, engine=HERE)
    alone = compare(**{**SMALL, "policies": ["random"]}, engine=HERE)
    kept = both.records.filter(pl.col("policy") == "random")
    assert kept.equals(alone.records)


def test_more_runs_than_fit_a_cell_are_split_and_numbered() -> None:
    result = compare(**{**SMALL, "n_runs": 23, "instances": ["uniform"]}, engine=HERE)
    assert result.records["run"].unique().sort().to_list() == list(range(23))
    ends = result.records.filter(pl.col("round") == 300)["regret"]
    assert len(ends) == 2 * 23
    assert ends.n_unique() == 2 * 23


def test_progress_says_which_runs_have_finished() -> None:
    finished: list[str] = []
    setting = SMALL | {"policies": ["random", Greedy], "n_runs": 2, "horizon": 5}
    compare(
        instance="uniform", engine=HERE, progress=lambda *what: finished.append(what[0]), **setting
    )
    assert [title for title in finished if title] == [
        "random on uniform, runs 0 to 1",
        "Greedy on uniform, run 0",
        "Greedy on uniform, run 1",
    ]


def test_the_interval_is_students() -> None:
    result = compare(**SMALL, engine=HERE)
    for row in result.summary().to_dicts():
        values = result.records.filter(
            (pl.col("round") == 300)
            & (pl.col("instance") == row["instance"])
            & (pl.col("policy") == row["policy"])
        )["regret"].to_numpy()
        low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
        assert (row["mean"], row["low"], row["high"]) == pytest.approx((values.mean(), low, high))


def test_one_run_has_no_interval(tmp_path: Path) -> None:
    result = compare(**{**SMALL, "n_runs": 1}, engine=HERE)
    assert result.summary()["high"].null_count() == 4
    result.write(str(tmp_path / "out"))
    assert Comparison.read(str(tmp_path / "out")).records.equals(result.records)
    json.dumps(result.summary().to_dicts(), allow_nan=False)
    for name, figure in regret_figures(result.curves()).items():
        save(figure, str(tmp_path / name))


def test_own_means_replace_the_instances() -> None:
    means = np.eye(12, 3)
    result = compare(**SMALL, means=means, engine=HERE)
    assert result.records["instance"].unique().to_list() == ["given"]
    assert result.config["n_users"] == 12
    assert result.config["means_sha256"] == hashlib.sha256(means.tobytes()).hexdigest()


def test_own_means_have_the_tuned_options_of_uniform_instances() -> None:
    result = compare(**SMALL, means=np.eye(12, 3), engine=HERE)
    chosen = result.config["options"]["given/elimination-greedy"]
    assert chosen == tuned_options("uniform", "elimination-greedy") != {}
    untuned = compare(**SMALL, means=np.eye(12, 3), tuned=False, engine=HERE)
    assert untuned.config["options"]["given/elimination-greedy"] == {}


def test_a_whole_setting_may_be_passed_and_changed() -> None:
    fields = {name: SMALL[name] for name in ("n_users", "n_arms", "min_group_size")}
    setting = Setting(**fields, horizon=1_000)
    shared = {"policies": SMALL["policies"], "n_runs": SMALL["n_runs"], "engine": HERE}
    both = ["uniform", "linear"]
    changed = compare(setting=setting, instances=both, horizon=SMALL["horizon"], **shared)
    assert changed.records.equals(compare(**SMALL, engine=HERE).records)


def test_the_instances_of_a_whole_setting_are_played() -> None:
    shared = SMALL | {"policies": "random", "n_runs": 2, "engine": HERE}
    problem = {name: shared.pop(name) for name in ("n_users", "n_arms", "min_group_size")}
    linear = Setting(**problem, horizon=300, instance="linear")
    for setting in (linear, replace(linear, instance="uniform")):
        assert compare(setting=setting, **shared).config["instances"] == [setting.instance]
    assert compare(setting=linear, instance="uniform", **shared).config["instances"] == ["uniform"]
    options = {"rate": 0.3}
    clustered = replace(linear, instance="clustered", instance_options=options)
    by_name = {"instance": "clustered", "instance_options": options}
    whole, named = compare(setting=clustered, **shared), compare(**shared | problem | by_name)
    assert whole.config["instances"] == ["clustered"]
    assert whole.records.equals(named.records)
    with pytest.raises(UnknownNameError, match=r"option of instance 'uniform' .* got 'rate'"):
        compare(setting=clustered, instance="uniform", **shared)


def test_a_whole_settings_instances_decide_the_tuned_options_beside_means() -> None:
    setting = Setting(n_users=12, n_arms=3, min_group_size=2, horizon=50, instance="linear")
    run = simulate("elimination-lp", np.eye(12, 3), setting=setting)
    assert run.options == tuned_options("linear", "elimination-lp")
    assert run.options != tuned_options("uniform", "elimination-lp")


def test_two_partials_of_one_class_are_told_to_have_names() -> None:
    both = [partial(Greedy, epsilon=0.1), partial(Greedy, epsilon=0.5)]
    with pytest.raises(InvalidInputError, match=r"must differ by name; .* Give each partial a"):
        compare(**SMALL | {"policies": both}, engine=Idle())


def test_one_round_is_no_plural() -> None:
    shared = SMALL | {"policies": "random", "horizon": 1, "n_runs": 1}
    result = compare(**shared, engine=HERE)
    assert "of 12 users over 1 round, 1 run<" in result._repr_html_()
    run = simulate("random", np.ones((12, 1)), min_group_size=3, horizon=1)
    assert "random: 12 users, 1 arm, groups of at least 3, 1 round<" in run._repr_html_()


def test_one_participation_for_each_user_is_refused_where_runs_are_side_by_side() -> None:
    rule = "participation must be one number here; one for each user is taken by simulate of a sin"
    with pytest.raises(InvalidInputError, match=rule):
        compare(**SMALL, participation=[0.5] * 12, engine=Idle())
    with pytest.raises(InvalidInputError, match=rule):
        price(rate=0.2, n_users=12, n_arms=3, horizon=10, min_group_sizes=3,
              participation=[0.5] * 12, engine=Idle())  # fmt: skip
    with pytest.raises(InvalidInputError, match=rule):
        simulate(Greedy, np.ones((2, 12, 3)), min_group_size=3, horizon=5, participation=[0.5] * 24)


def test_records_are_written_with_the_whole_configuration(tmp_path: Path) -> None:
    result = compare(**SMALL, engine=HERE)
    folder = tmp_path / "new" / "results"
    result.write(folder)
    assert pl.read_parquet(folder / "records.parquet").equals(result.records)
    config = json.loads((folder / "config.json").read_text())
    assert config == json.loads(pl.read_parquet_metadata(folder / "records.parquet")["shoal"])
    assert config["shoal"] == __version__
    assert config["seed"] == 0
    assert config["options"]["uniform/elimination-greedy"] == tuned_options(
        "uniform", "elimination-greedy"
    )
    with pytest.raises(InvalidInputError, match=r"out must be a new folder; .* exists"):
        result.write(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["results"]


def test_numbers_of_numpy_are_written_as_any_others(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        name: np.int64(v) if isinstance(v, int) else v for name, v in SMALL.items()
    }
    given |= {"seed": np.int64(0), "participation": np.float64(1.0)}
    result = compare(**given, engine=HERE)
    result.write(tmp_path / "r")
    assert result.records.equals(compare(**SMALL, engine=HERE).records)


def test_a_folder_that_can_not_be_filled_is_not_left_behind(tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        with new_folder(folder) as part:
            (part / "records.parquet").write_bytes(b"whole")
            os.write(os.open("/dev/full", os.O_WRONLY), b"x")

    with pytest.raises(ShoalError, match=r"can be made and filled; got '.*out': No space left"):
        fill(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_configuration_can_be_run_again_from_its_file(tmp_path: Path) -> None:
    result = compare(**SMALL, engine=HERE)
    result.write(tmp_path / "r")
    config = json.loads((tmp_path / "r" / "config.json").read_text())
    names = [*SMALL, "instances", "seed", "rewards", "participation"]
    again = compare(**{name: config[name] for name in names}, engine=HERE)
    assert again.records.equals(result.records)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"policies": ["rndom"]}, UnknownNameError, "did you mean 'random'"),
        ({"instances": ["unifrm"]}, UnknownNameError, "did you mean 'uniform'"),
        ({"n_runs": 0}, InvalidInputError, "n_runs must be a whole number of at least 1; got 0"),
        ({"options": {"random": {"x": 1}}}, UnknownNameError, "option of 'random'"),
        ({"options": {"lp": {"x": 1}}}, UnknownNameError, "policy with options"),
        ({"means": [0.5]}, InvalidInputError, "means must be a matrix of numbers"),
        ({"means": [[0.5, 1.5]] * 12}, InvalidInputError, "the mean of user 0 on arm 1 must be"),
        ({"instances": ["given"]}, UnknownNameError, "instance must be a known name; got 'given'"),
        ({"rewards": "bernouli"}, UnknownNameError, "did you mean 'bernoulli'"),
        ({"participation": 1.5}, InvalidInputError, "participation must be a number between 0"),
        ({"seed": -1}, InvalidInputError, "seed must be a whole number of at least 0; got -1"),
        ({"horizon": None}, InvalidInputError, "horizon must be a whole number"),
        ({"min_group_size": 0}, InvalidInputError, "min_group_size must be between 1 and n_users"),
        ({"policies": []}, InvalidInputError, "policies must name at least one"),
        ({"instances": []}, InvalidInputError, "instances must name at least one"),
    ],
)
def test_bad_input_is_refused_before_any_worker_starts(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        compare(**(SMALL | change), engine=Idle())


def test_a_block_that_released_nothing_does_not_hide_the_smallest_group_of_the_others() -> None:
    runs = [
        simulate("shoal", np.eye(12, 3), min_group_size=2, horizon=5, participation=share)
        for share in (0.0, 1.0)
    ]
    assert [run.smallest_group for run in runs] == [0, 2]
    setting = Setting(n_users=12, n_arms=3, min_group_size=2, horizon=5, instance="given")
    cells = [Cell(setting, "shoal", {}, first_run) for first_run in range(2)]
    both = Comparison.from_runs(cells, runs, {})
    assert both.cells["smallest_group"].to_list() == [2]
    assert both.records["run"].unique().to_list() == [0, 1]
    first = Comparison.from_runs(cells[:1], runs[:1], {})
    assert first.cells["smallest_group"].to_list() == [0]


def test_what_each_cell_took_is_added_up() -> None:
    result = compare(**SMALL, engine=HERE)
    assert isinstance(result, Comparison)
    assert result.cells["user_rounds"].to_list() == [4 * 12 * 300] * 4
    assert result.cells["smallest_group"].to_list() == [2, 0, 2, 0]
