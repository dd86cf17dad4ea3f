from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path

import polars as pl

from shoal.engines import LocalEngine
from shoal.figures import regret_figures, save
from shoal.figures.regret import LABEL_GAP, _label_places
from shoal.simulation import compare


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


def test_lines_differ_in_dash_and_labels_stand_at_their_ends() -> None:
    spec = regret_figures(_curves())["uniform"].to_dict()
    bands, lines, labels = spec["layer"]
    assert lines["encoding"]["strokeDash"]["field"] == "policy"
    assert bands["encoding"]["y"]["field"] == "low"
    assert labels["mark"]["type"] == "text"


def test_labels_that_would_overlap_are_moved_apart() -> None:
    ends = pl.DataFrame(
        {"policy": ["a", "b", "c"], "round": [10] * 3, "mean": [100.0, 101.0, 10.0]}
    )
    places = _label_places(ends).sort("place")["place"].to_list()
    gaps = [high - low for low, high in pairwise(places)]
    assert min(gaps) >= LABEL_GAP * 101 - 1e-9
