"""Results in a notebook: a short line, a table, a frame and a chart each."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from runpy import run_path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import pytest

from shoal import Plan, Problem, Roster, compare, make_policy, price, simulate
from shoal.engines import LocalEngine
from shoal.instances import from_log
from shoal.notebook import html_table

ROOT = Path(__file__).parents[1]
PROBLEM = Problem(n_users=6, n_arms=2, min_group_size=3)
PLAN = Plan([0] * 3 + [1] * 3, [0] * 3 + [-1] * 3, problem=PROBLEM)
HERE = LocalEngine(n_workers=1)
LOG = pl.DataFrame({"user": [1, 1, 2, 2], "arm": ["a", "b"] * 2, "reward": [0.0, 1.0, 0.5, 0.5]})


def results() -> dict[str, Any]:
    small: dict[str, Any] = {"n_users": 20, "n_arms": 3, "horizon": 30, "n_runs": 2, "engine": HERE}
    return {
        "Problem": PROBLEM,
        "Plan": PLAN,
        "Feedback": PLAN.add_up(dict.fromkeys(range(6), 1.0)),
        "Run": simulate("best-arm", np.eye(6, 2), min_group_size=3, horizon=20),
        "Comparison": compare(policies=["random", "best-arm"], min_group_size=3, **small),
        "Price": price(policy="random", rate=0.2, min_group_sizes=[2, 5], **small),
        "Log": from_log(LOG),
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


def test_a_stack_of_runs_shows_their_number_and_their_mean() -> None:
    stack = np.random.default_rng(0).random((3, 12, 2))
    run = simulate("random", stack, min_group_size=3, horizon=20)
    mean = run.curves[:, -1].mean()
    assert f"regret={run.regret:.6g}, n_shards=3, regret_per_shard={mean:.6g}, " in repr(run)
    assert f'mean of 3 shards or runs</td><td style="text-align: right">{mean:.3g}<' in (
        run._repr_html_()
    )


def test_text_in_a_table_is_escaped() -> None:
    text = html_table("a < b", ["<b>"], [["<script>"]], "x & y")
    assert "<script>" not in text
    assert text.endswith("<p>x &amp; y</p>")


def test_results_have_frames_that_say_the_same(every_result: dict[str, Any]) -> None:
    frames = {
        name: r.to_frame() for name, r in every_result.items() if name not in ("Problem", "Log")
    }
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


def test_what_has_no_table_is_one_short_line_too() -> None:
    rng = np.random.default_rng(0)
    policy = make_policy("random", PROBLEM, rng=rng)
    assert repr(policy) == f"RandomPlay({PROBLEM!r}, rounds=0)"
    many = Roster(range(9), arms=[f"arm-{number}" for number in range(100)])
    assert len(repr(many)) < 120
    assert len(repr(from_log(LOG).population)) < 120


def test_a_comparisons_table_has_the_instances_in_the_order_that_was_asked_for() -> None:
    result = compare(
        instances=["uniform", "linear"], policies="random", horizon=20, n_runs=2, engine=HERE
    )
    table = result._repr_html_()
    assert table.index("uniform") < table.index("linear")
    assert "none" in table, "no group was seen"


def test_a_price_names_arguments_and_its_repr_an_attribute(every_result: dict[str, Any]) -> None:
    answer = every_result["Price"]
    assert answer.recommended is None
    assert repr(answer).endswith("recommended=None)")
    assert "--" not in answer._repr_html_()


def test_a_chart_can_be_drawn_without_a_network(every_result: dict[str, Any]) -> None:
    with alt.renderers.enable("svg"):
        bundle = every_result["Run"].plot()._repr_mimebundle_()
    assert list(bundle) == ["image/svg+xml"]


@pytest.mark.slow
def test_a_notebook_that_a_reader_changed_is_kept_when_the_site_is_built_again(
    tmp_path: Path,
) -> None:
    notebooks = run_path(str(ROOT / "docs/_extensions/notebooks.py"))
    target = tmp_path / "page.ipynb"
    page = notebooks["notebook"]("# A page\n\n```python\nprint(1)\n```\n", "tutorials/page")
    notebooks["save"](page, target)
    run = json.loads(target.read_text(encoding="utf-8"))
    run["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "1"}]
    target.write_text(json.dumps(run), encoding="utf-8")
    notebooks["save"](page, target)
    assert list(tmp_path.iterdir()) == [target]
    for number in 1, 2:
        run["cells"][1]["source"] = [f"print({number + 1})"]
        target.write_text(json.dumps(run), encoding="utf-8")
        notebooks["save"](page, target)
        kept = json.loads((tmp_path / f"page-changed-{number}.ipynb").read_text(encoding="utf-8"))
        assert kept == run
        assert json.loads(target.read_text(encoding="utf-8")) == page


def test_the_first_cell_of_a_notebook_keeps_progress_out_of_the_outputs() -> None:
    """A command of a notebook writes to a pseudo-terminal."""
    notebooks = run_path(str(ROOT / "docs/_extensions/notebooks.py"))
    command = "import subprocess; subprocess.run(['shoal', 'simulate', 'random', '--horizon', '9'])"
    master, slave = pty.openpty()
    env = os.environ | {"PATH": os.defpath, "TERM": "xterm"}
    child = subprocess.Popen(
        [sys.executable, "-c", f"{notebooks['SETUP']}\n{command}"],
        env=env,
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    output = b""
    with suppress(OSError):  # the end of a terminal
        while part := os.read(master, 4096):
            output += part
    os.close(master)
    assert child.wait() == 0
    assert b"regret so far" in output
    assert b"\x1b" not in output
