from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shoal.engines import LocalEngine
from shoal.experiments import compare, price, simulate
from shoal.figures import estimates_figure, price_figure, regret_figures, save, scaling_figure
from shoal.figures.style import LABEL_GAP, label_places
from shoal.palette import LIGHT


def _curves() -> pl.DataFrame:
    return compare(
        policies=["random", "best-arm"], horizon=200, n_runs=3, engine=LocalEngine(n_workers=1)
    ).curves()


def test_a_figure_for_each_class_is_written_as_png_and_svg(tmp_path: Path) -> None:
    figures = regret_figures(_curves())
    assert list(figures) == ["uniform", "linear"]
    png, svg = save(figures["uniform"], tmp_path / "regret")
    width, height = struct.unpack(">II", png.read_bytes()[16:24])
    assert width > 1000
    assert height > 600
    text = svg.read_text()
    for label in ("random", "best-arm", "cumulative regret", "round"):
        assert label in text


@pytest.mark.parametrize("sizes", [{"horizon": 1}, {"horizon": 20, "n_checkpoints": 1}])
def test_a_run_of_one_checkpoint_is_drawn(sizes: dict[str, int], tmp_path: Path) -> None:
    run = simulate("random", np.eye(6), min_group_size=2, **sizes)  # type: ignore[arg-type]
    assert run.curves.size == 1
    save(run.plot(), tmp_path / "regret")


def test_the_price_figure_shows_both_panels_with_their_reference_lines(tmp_path: Path) -> None:
    answer = price(
        n_users=40, n_arms=3, rate=0.2, horizon=30, min_group_sizes=[2, 10], n_runs=2,
        policy="random", engine=LocalEngine(n_workers=1),
    ).to_dict()  # fmt: skip
    _, svg = save(price_figure(answer), tmp_path / "price")
    text = svg.read_text()
    for label in ("C = 2", "C = 10", "best single arm", "full knowledge", "least group size C"):
        assert label in text


def test_lines_differ_in_dash_and_labels_stand_at_their_ends() -> None:
    spec = regret_figures(_curves())["uniform"].to_dict()
    bands, lines, labels = spec["layer"]
    assert lines["encoding"]["strokeDash"]["field"] == "policy"
    assert bands["encoding"]["y"]["field"] == "low"
    assert labels["mark"]["type"] == "text"


def test_the_axis_of_regret_begins_at_the_least_that_a_line_shows() -> None:
    records = pl.DataFrame(
        {"instance": "uniform", "policy": policy, "run": run, "round": t, "regret": regret}
        for policy, run, t, regret in (
            ("a", 0, 1, 0.0), ("a", 0, 9, 40.0), ("a", 1, 1, 3.0), ("a", 1, 9, 60.0),
            ("b", 0, 1, 0.0), ("b", 0, 9, 0.0), ("b", 1, 1, 0.0), ("b", 1, 9, 0.0),
        )
    )  # fmt: skip
    curves = records.group_by("instance", "policy", "round", maintain_order=True).agg(
        mean=pl.mean("regret"), low=-pl.max("regret"), high=pl.max("regret")
    )
    spec = regret_figures(curves, records=records)["uniform"].to_dict()
    _, runs, means, labels = spec["layer"]
    assert means["encoding"]["y"]["scale"]["domain"] == [1.5, 63.0]
    assert "log scale" in means["encoding"]["y"]["title"]
    for layer, n_rows in ((runs, 3), (means, 2), (labels, 2)):  # of b, there is only the name
        assert len(spec["datasets"][layer["data"]["name"]]) == n_rows


def test_many_runs_of_many_policies_are_as_many_rows_as_altair_takes() -> None:
    """Six policies, 120 runs and 100 checkpoints: 60,000 rows of records."""
    policy, run, t = np.meshgrid(np.arange(6), np.arange(120), np.arange(1, 101), indexing="ij")
    records = pl.DataFrame({"run": run.ravel(), "round": t.ravel()}).with_columns(
        instance=pl.lit("uniform"), policy=pl.Series(policy.ravel().astype(str)), regret=1.0
    )
    curves = records.group_by("instance", "policy", "round", maintain_order=True).agg(
        mean=pl.mean("regret"), low=pl.min("regret"), high=pl.max("regret")
    )
    spec = regret_figures(curves, records=records)["uniform"].to_dict()
    drawn = pl.DataFrame(spec["datasets"][spec["layer"][1]["data"]["name"]])
    assert len(drawn) <= 5_000
    assert drawn.select("policy", "run").n_unique() == 6 * 100
    assert drawn["round"].max() == 100


def test_the_flagship_is_on_top_and_widest_and_every_run_is_drawn() -> None:
    rounds, policies = [10, 20], ["shoal", "ucb", "random"]
    records = pl.DataFrame(
        {"instance": "uniform", "policy": policy, "run": run, "round": t, "regret": t * (run + 1.0)}
        for policy in policies
        for run in range(3)
        for t in rounds
    )
    curves = records.group_by("instance", "policy", "round", maintain_order=True).agg(
        mean=pl.mean("regret"), low=pl.min("regret"), high=pl.max("regret")
    )
    spec = regret_figures(curves, records=records)["uniform"].to_dict()
    bands, runs, others, flagship, labels, bold = spec["layer"]
    assert runs["encoding"]["detail"]["field"] == "run"
    assert len(spec["datasets"][runs["data"]["name"]]) == len(records)
    assert {row["policy"] for row in spec["datasets"][flagship["data"]["name"]]} == {"shoal"}
    assert flagship["mark"]["strokeWidth"] > 2 * others["mark"]["strokeWidth"]
    assert (labels["mark"]["fontWeight"], bold["mark"]["fontWeight"]) == ("normal", "bold")
    for layer in (bands, runs, others, flagship):  # a band and a run have their line's colour
        assert layer["encoding"]["color"] == flagship["encoding"]["color"]
    scale = flagship["encoding"]["color"]["scale"]
    assert scale["range"][scale["domain"].index("shoal")] == LIGHT.colours[0]
    assert len(set(scale["range"])) == len(policies)


def test_labels_at_the_top_of_a_logarithmic_axis_are_moved_down() -> None:
    ends = pl.DataFrame({"policy": list("abc"), "round": [10] * 3, "mean": [99.0, 100.0, 2.0]})
    places = label_places(ends, "policy", "round", domain=(1.0, 100.0)).sort("place")["place"]
    assert places.max() == pytest.approx(100)
    gaps = [high / low for low, high in pairwise(places)]
    assert min(gaps) >= 100**LABEL_GAP - 1e-9


def test_labels_that_would_overlap_are_moved_apart() -> None:
    ends = pl.DataFrame(
        {
            "policy": ["a", "b", "c"],
            "round": [10] * 3,
            "mean": [100.0, 101.0, 10.0],
            "high": [None, 110.0, 12.0],
        }
    )
    places = label_places(ends, "policy", "round").sort("place")["place"].to_list()
    gaps = [high - low for low, high in pairwise(places)]
    assert min(gaps) >= LABEL_GAP * 110 - 1e-9


def test_growth_has_a_panel_for_each_quantity_and_cuts_intervals_at_the_axis(
    tmp_path: Path,
) -> None:
    points = pl.DataFrame(
        {
            "quantity": ["users N"] * 4 + ["arms K"] * 4,
            "value": [10, 10, 20, 20, 2, 2, 5, 5],
            "policy": ["shoal", "ucb"] * 4,
            "mean": [10.0, 20.0, 11.0, 22.0, 5.0, 9.0, 10.0, 20.0],
            "low": [-1.0, 19.0, 10.0, 21.0, 4.0, 8.0, 9.0, 19.0],
            "high": [21.0, 21.0, 12.0, 23.0, 6.0, 10.0, 11.0, 21.0],
        }
    )
    figure = scaling_figure(points, title="growth")
    spec = figure.to_dict()
    assert len(spec["concat"]) == 2
    for panel in spec["concat"]:
        for layer in panel["layer"]:
            assert layer["encoding"]["y"]["scale"]["domain"] == [2.5, 23.0]
            assert layer["encoding"]["y"]["scale"]["clamp"]
    _, svg = save(figure, tmp_path / "scaling")
    text = svg.read_text()
    for label in ("users N", "arms K", "shoal", "ucb", "regret per user"):
        assert label in text


def test_estimates_show_every_user_and_arm_and_mark_the_best(tmp_path: Path) -> None:
    means = np.array([[0.2, 0.9], [0.8, 0.1], [0.5, 0.4]])
    figure = estimates_figure(means, {"early": means * 0 + 0.5, "late": means}, title="beliefs")
    spec = figure.to_dict()
    assert [panel["title"] for panel in spec["hconcat"]] == ["early", "late"]
    name = spec["hconcat"][1]["layer"][1]["data"]["name"]
    cells = spec["datasets"][name]
    assert len(cells) == means.size
    best = {(cell["true"], cell["believed"]) for cell in cells if "best" in cell["kind"]}
    assert best == {(0.9, 0.9), (0.8, 0.8), (0.5, 0.5)}
    _, svg = save(figure, tmp_path / "estimates")
    assert "estimated mean" in svg.read_text()
