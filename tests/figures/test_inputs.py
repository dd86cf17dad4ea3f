"""Figures take results as they are, and refuse by name what can't be drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import pytest

from shoal import figures
from shoal.engines import LocalEngine
from shoal.errors import InvalidInputError
from shoal.experiments import compare, price

# The calls are wrong on purpose, and no type checker is to say so.
draw: Any = figures
HERE = LocalEngine(n_workers=1)
POINT = {"policy": "a", "round": 1, "mean": 1.0, "low": 0.5, "high": 2.0}
FIGURE = alt.Chart(pl.DataFrame({"x": [1]})).mark_point().encode(x="x:Q")
TWO_CLASSES = pl.DataFrame(
    [POINT | {"instance": name, "run": 0, "regret": 1.0} for name in ("linear", "uniform")]
)
BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "a list of curves": (
        lambda: draw.regret_figures([1, 2]),
        r"curves must be a dataframe, such as Comparison.curves\(\); got a list",
    ),
    "curves without classes": (
        lambda: draw.regret_figures(pl.DataFrame([POINT])),
        "curves must have rows with the columns instance, policy, .*; got 1 rows of",
    ),
    "curves without rows": (
        lambda: draw.regret_figure(pl.DataFrame([POINT]).clear(), title=""),
        "curves must have rows with the columns policy, round, .*; got 0 rows of",
    ),
    "a list of records": (
        lambda: draw.regret_figure(pl.DataFrame([POINT]), title="", records=[]),
        "records must be a dataframe, such as Comparison.records; got a list",
    ),
    "a list as a price": (
        lambda: draw.price_figure([1]),
        "answer must be a Price, or what its to_dict returns, with costs, .*; got a list",
    ),
    "the costs of a price": (
        lambda: draw.price_figure(pl.DataFrame([POINT])),
        "answer must be a Price, .*; got a DataFrame",
    ),
    "curves of two classes": (
        lambda: draw.regret_figure(TWO_CLASSES, title=""),
        "curves must be of one class of instances; got linear, uniform. regret_figures draws a",
    ),
    "records of two classes": (
        lambda: draw.regret_figure(pl.DataFrame([POINT]), records=TWO_CLASSES, title=""),
        "records must be of one class of instances; got linear, uniform. regret_figures draws a",
    ),
    "regret in words": (
        lambda: draw.regret_figure(pl.DataFrame([POINT | {"mean": "much"}]), title=""),
        "column 'mean' of curves must hold numbers; got String",
    ),
    "points in words": (
        lambda: draw.scaling_figure(
            pl.DataFrame([POINT | {"quantity": "arms", "value": 2, "mean": "much"}]), title=""
        ),
        "column 'mean' of points must hold numbers; got String",
    ),
    "half a price": (lambda: draw.price_figure({"costs": []}), "answer must be .* got a dict"),
    "points without a quantity": (
        lambda: draw.scaling_figure(pl.DataFrame([POINT]), title=""),
        "points must have rows with the columns quantity, policy, value",
    ),
    "loads of one assignment": (
        lambda: draw.loads_figure([1, 2], min_crowd=2, title=""),
        r"loads must be whole numbers of shape \(n_assignments, n_arms\); got shape \(2,\)",
    ),
    "a crowd in words": (
        lambda: draw.loads_figure([[3, 1]], min_crowd="a", title=""),
        "min_crowd must be a whole number of at least 1; got 'a'",
    ),
    "a crowd below nobody": (
        lambda: draw.loads_figure([[3, 1]], min_crowd=-5, title=""),
        "min_crowd must be a whole number of at least 1; got -5",
    ),
    "loads below nobody": (
        lambda: draw.loads_figure([[3, -1]], min_crowd=2, title=""),
        "loads must be at least 0; got -1",
    ),
    "a group size in words": (
        lambda: draw.crowds_figure([0, 1], [0, 0], min_group_size="a"),
        "min_group_size must be a whole number of at least 1; got 'a'",
    ),
    "a group size below nobody": (
        lambda: draw.crowds_figure([0, 1], [0, 0], min_group_size=-4),
        "min_group_size must be a whole number of at least 1; got -4",
    ),
    "an arm before the first": (
        lambda: draw.crowds_figure([0, -1], [0, 0], min_group_size=2),
        "arms must be at least 0; got -1",
    ),
    "a group before none": (
        lambda: draw.crowds_figure([0, 1], [0, -2], min_group_size=2),
        "groups must be at least -1; got -2",
    ),
    "estimates of nothing": (
        lambda: draw.estimates_figure(np.eye(2), {"a": np.full((2, 2), np.nan)}, title=""),
        r"estimates\['a'\] must have a finite number; got nan alone",
    ),
    "a plan as arms": (
        lambda: draw.crowds_figure("plan", [0], min_group_size=2),
        r"arms must be whole numbers of shape \(n_users,\); got a str",
    ),
    "groups of other users": (
        lambda: draw.crowds_figure([0, 1], [0], min_group_size=2),
        r"groups must be whole numbers of shape \(2,\); got shape \(1,\) of int64",
    ),
    "ragged means": (
        lambda: draw.estimates_figure([[0.5], [0.5, 0.5]], {}, title=""),
        r"means must be numbers of shape \(n_users, n_arms\); got a list",
    ),
    "estimates without a name": (
        lambda: draw.estimates_figure(np.eye(2), np.eye(2), title=""),
        "estimates must map at least one name to an array like means; got a ndarray",
    ),
    "estimates of other users": (
        lambda: draw.estimates_figure(np.eye(2), {"a": np.eye(3)}, title=""),
        r"estimates\['a'\] must be numbers of shape \(2, 2\); got shape \(3, 3\) of float64",
    ),
    "a number as figures": (
        lambda: draw.side_by_side(3),
        "figures must be of Altair.*; got an int",
    ),
    "no figures": (lambda: draw.side_by_side([]), "figures must be of Altair.*; got none"),
    "a file of no figure": (lambda: draw.save("x", "x"), "figure must be of Altair.*; got a str"),
    "a missing folder": (
        lambda: draw.save(FIGURE, "nowhere/figure"),
        "path must lie in a folder that exists; got 'nowhere/figure'",
    ),
    "a number as a file": (lambda: draw.save(FIGURE, 3), "path must be that of a file; got 3"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_drawn_is_refused_by_name_rule_and_value(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call, message = BAD[name]
    with pytest.raises(InvalidInputError, match=message):
        call()
    assert not list(tmp_path.iterdir())


def test_results_and_lists_are_drawn_as_they_are() -> None:
    result = compare(policies=["random", "best-arm"], horizon=50, n_runs=2, engine=HERE)
    by_name = figures.regret_figures(result)
    parts = figures.regret_figures(result.curves(), records=result.records)
    assert {name: figure.to_dict() for name, figure in by_name.items()} == {
        name: figure.to_dict() for name, figure in parts.items()
    }
    assert figures.side_by_side(by_name).to_dict() == result.plot().to_dict()
    answer = price(
        n_users=40, n_arms=3, rate=0.2, horizon=30, min_group_sizes=[2, 10], n_runs=2,
        policy="random", engine=HERE,
    )  # fmt: skip
    assert figures.price_figure(answer).to_dict() == answer.plot().to_dict()
    (single,) = figures.regret_figures(result.curves().filter(instance="linear")).values()
    assert figures.side_by_side(single) is single
    draw.loads_figure([[3, 1], [2, 2]], min_crowd=2, title="")
    draw.crowds_figure([0, 0, 1], [0, 0, -1], min_group_size=2)
    draw.estimates_figure([[0, 1]], {"a": [[0.5, 0.5]]}, title="")


def test_dataframes_of_other_libraries_are_drawn_too() -> None:
    points = pl.DataFrame([POINT | {"instance": "linear", "round": t} for t in (1, 2)])
    records = pl.DataFrame([{"policy": "a", "run": 0, "round": t, "regret": 1.0} for t in (1, 2)])
    expected = figures.regret_figure(points, records=records, title="").to_dict()
    for frame in (
        points.to_pandas(),
        points.lazy(),
        points.with_columns(pl.col("policy").cast(pl.Categorical)),
    ):
        figure = draw.regret_figure(frame, records=records.to_pandas(), title="")
        assert figure.to_dict() == expected
    assert list(draw.regret_figures(points.to_pandas())) == ["linear"]
    grown = points.with_columns(quantity=pl.lit("arms"), value=pl.col("round"))
    of_pandas = draw.scaling_figure(grown.to_pandas(), title="").to_dict()
    assert of_pandas == figures.scaling_figure(grown, title="").to_dict()
