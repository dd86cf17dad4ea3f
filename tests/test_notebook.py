"""Results in a notebook: a short line, a table, a frame and a chart each."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import pytest

from shoal import Plan, Problem, compare, price, simulate
from shoal.engines import LocalEngine
from shoal.notebook import html_table

PROBLEM = Problem(n_users=6, n_arms=2, min_group_size=3)
PLAN = Plan([0] * 3 + [1] * 3, [0] * 3 + [-1] * 3, problem=PROBLEM)
HERE = LocalEngine(n_workers=1)


def results() -> dict[str, Any]:
    small: dict[str, Any] = {"n_users": 20, "n_arms": 3, "horizon": 30, "n_runs": 2, "engine": HERE}
    return {
        "Problem": PROBLEM,
        "Plan": PLAN,
        "Feedback": PLAN.add_up(dict.fromkeys(range(6), 1.0)),
        "Run": simulate("best-arm", np.eye(6, 2), min_group_size=3, horizon=20),
        "Comparison": compare(policies=["random", "best-arm"], min_group_size=3, **small),
        "Price": price(policy="random", rate=0.2, min_group_sizes=[2, 5], **small),
    }


class Cells(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows = 0
        self.feed(text)
        assert not self.open, "a tag is not closed"

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        self.rows += tag == "tr"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def every_result() -> dict[str, Any]:
    return results()


def test_every_result_is_one_short_line_and_one_table(every_result: dict[str, Any]) -> None:
    for name, result in every_result.items():
        line = repr(result)
        assert line.startswith(f"{name}(")
        assert len(line) < 120, line
        assert "\n" not in line
        assert Cells(result._repr_html_()).rows >= 2, name


def test_text_in_a_table_is_escaped() -> None:
    text = html_table("a < b", ["<b>"], [["<script>"]], "x & y")
    assert "<script>" not in text
    assert text.endswith("<p>x &amp; y</p>")


def test_results_have_frames_that_say_the_same(every_result: dict[str, Any]) -> None:
    frames = {name: r.to_frame() for name, r in every_result.items() if name != "Problem"}
    assert frames["Plan"].to_dicts()[3] == {"user": 3, "arm": 1, "group": -1}
    assert frames["Feedback"].to_dicts() == [
        {"group": 0, "arm": 0, "reports": 3, "rounds": 1, "total": 3.0}
    ]
    last = frames["Run"].filter(pl.col("round") == 20)
    assert last["regret"].to_list() == [every_result["Run"].regret]
    assert frames["Comparison"].equals(every_result["Comparison"].records)
    price_row = frames["Price"].to_dicts()[1]
    assert price_row["min_group_size"] == 5
    assert price_row["gain_low"] == every_result["Price"].costs[1].gain.low


def test_results_draw_charts_of_their_numbers(every_result: dict[str, Any]) -> None:
    for name, panels in (("Plan", 1), ("Run", 1), ("Comparison", 2), ("Price", 2)):
        chart = every_result[name].plot()
        assert isinstance(chart, alt.TopLevelMixin)
        spec = chart.to_dict()
        assert len(spec.get("hconcat", [spec])) == panels
    bars = PLAN.plot().to_dict()
    data = bars["datasets"][bars["layer"][0]["data"]["name"]]
    assert [(row["arm"], row["group"], row["users"]) for row in data] == [(0, 0, 3), (1, -1, 3)]
