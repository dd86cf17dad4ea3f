"""The price of anonymity: what each group size earns, and when it starts to pay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from shoal.figures.regret import COLOURS, DASHES

WIDTH, HEIGHT, LABEL_GAP = 330, 300, 0.05
GREY = "#666666"


def price_figure(answer: Mapping[str, Any]) -> alt.HConcatChart:
    """Draw what ``Price.to_dict`` returns: earnings by group size, and over the rounds.

    The left panel has the 95 % interval of the mean as a bar, and that of one population as a thin
    line. Grey rules are the best single arm and full knowledge.
    """
    figure: alt.HConcatChart = (
        alt.hconcat(_by_size(answer), _over_rounds(answer), spacing=40)
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, gridColor="#e4e4e4")
        .configure_title(anchor="start", fontSize=14)
    )
    return figure


def _by_size(answer: Mapping[str, Any]) -> alt.LayerChart:
    rows = pl.DataFrame(
        [
            {
                "size": cost["min_group_size"],
                **cost["reward"],
                "least": cost["one_population"]["low"],
                "most": cost["one_population"]["high"],
            }
            for cost in answer["costs"]
        ]
    )
    base = alt.Chart(rows).encode(
        x=alt.X("size:O", title="least group size C").axis(labelAngle=0),
    )
    reward = alt.Y("mean:Q", title="reward per user and round").scale(zero=False)
    one = base.mark_rule(color=COLOURS[0], opacity=0.6).encode(
        y=alt.Y("least:Q", title=""), y2="most:Q"
    )
    mean = base.mark_rule(color=COLOURS[0], strokeWidth=7, opacity=0.45).encode(
        y=alt.Y("low:Q", title=""), y2="high:Q"
    )
    points = base.mark_point(color=COLOURS[0], filled=True, size=70, opacity=1).encode(y=reward)
    panel: alt.LayerChart = alt.LayerChart(layer=[_rules(answer), one, mean, points]).properties(
        width=WIDTH, height=HEIGHT, title="what each group size earns"
    )
    return panel


def _over_rounds(answer: Mapping[str, Any]) -> alt.LayerChart:
    sizes = [str(cost["min_group_size"]) for cost in answer["costs"]]
    rounds = np.array(answer["rounds"])
    curves = pl.DataFrame(
        {
            "size": [f"C = {size}" for size in sizes for _ in rounds],
            "round": np.tile(rounds, len(sizes)),
            "reward": np.concatenate([answer["curves"][size] for size in sizes]),
        }
    )
    names = curves["size"].unique(maintain_order=True).to_list()
    colour = alt.Color("size:N", legend=None, sort=names).scale(
        domain=names, range=[COLOURS[i % len(COLOURS)] for i in range(len(names))]
    )
    dash = alt.StrokeDash("size:N", legend=None, sort=names).scale(
        domain=names, range=[DASHES[i % len(DASHES)] for i in range(len(names))]
    )
    lines = (
        alt.Chart(curves)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("round:Q", title="round").axis(format="~s", grid=False),
            y=alt.Y("reward:Q", title="reward per user in that round").scale(zero=False),
            color=colour,
            strokeDash=dash,
        )
    )
    labels = (
        alt.Chart(_label_places(curves, answer))
        .mark_text(align="left", dx=6, fontSize=12)
        .encode(x="round:Q", y="place:Q", text="size:N", color=colour)
    )
    panel: alt.LayerChart = alt.LayerChart(layer=[_rules(answer), lines, labels]).properties(
        width=WIDTH, height=HEIGHT, title="when it starts to pay"
    )
    return panel


def _rules(answer: Mapping[str, Any]) -> alt.LayerChart:
    levels = pl.DataFrame(
        {
            "name": ["best single arm", "full knowledge"],
            "level": [answer["best_arm"], answer["full_knowledge"]],
        }
    )
    base = alt.Chart(levels).encode(y=alt.Y("level:Q", title=""))
    rules = base.mark_rule(color=GREY, strokeDash=[4, 3])
    text = base.mark_text(align="right", baseline="top", dx=-4, dy=4, color=GREY).encode(
        x=alt.value(WIDTH), text="name:N"
    )
    return alt.LayerChart(layer=[rules, text])


def _label_places(curves: pl.DataFrame, answer: Mapping[str, Any]) -> pl.DataFrame:
    """Put each label at its line's end, moved up where it would lie on the one below."""
    ends = curves.group_by("size", maintain_order=True).last().sort("reward")
    top = max(answer["full_knowledge"], curves.select(pl.col("reward").max()).item())
    gap = LABEL_GAP * (top - curves.select(pl.col("reward").min()).item())
    places: list[float] = []
    for end in ends["reward"]:
        places.append(max(end, places[-1] + gap) if places else end)
    return ends.select("size", "round", place=pl.Series(places, dtype=pl.Float64))
