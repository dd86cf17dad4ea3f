"""The price of anonymity: what each group size earns, and when it starts to pay."""

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from shoal.figures.style import COLOURS, colour_and_dash, end_labels, label_places, styled

WIDTH, HEIGHT = 330, 300
GREY = "#666666"


def price_figure(answer: Mapping[str, Any]) -> alt.HConcatChart:
    """Draw what ``Price.to_dict`` returns: earnings by group size, and over the rounds.

    The left panel has the 95 % interval of the mean as a bar, and that of one population as a thin
    line. Grey rules and bands are the best single arm and full knowledge with their intervals.
    """
    figure: alt.HConcatChart = styled(
        alt.hconcat(_by_size(answer), _over_rounds(answer), spacing=40)
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
    colour, dash = colour_and_dash("size", names)
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
    lowest, highest = curves["reward"].to_numpy().min(), curves["reward"].to_numpy().max()
    height = max(answer["full_knowledge"], highest) - lowest
    places = label_places(curves, "size", "round", value="reward", height=height)
    labels = end_labels(places, "size", "round", colour)
    panel: alt.LayerChart = alt.LayerChart(layer=[_rules(answer), lines, labels]).properties(
        width=WIDTH, height=HEIGHT, title="when it starts to pay"
    )
    return panel


def _rules(answer: Mapping[str, Any]) -> alt.LayerChart:
    names = {"best_arm": "best single arm", "full_knowledge": "full knowledge"}
    levels = pl.DataFrame(
        [
            {"name": label, "level": answer[name], **_ends(answer["bands"][name])}
            for name, label in names.items()
        ]
    )
    base = alt.Chart(levels).encode(y=alt.Y("level:Q", title=""))
    bands = (
        alt.Chart(levels)
        .mark_rect(color=GREY, opacity=0.12)
        .encode(y=alt.Y("low:Q", title=""), y2="high:Q", x=alt.value(0), x2=alt.value(WIDTH))
    )
    rules = base.mark_rule(color=GREY, strokeDash=[4, 3])
    text = base.mark_text(align="right", baseline="top", dx=-4, dy=4, color=GREY).encode(
        x=alt.value(WIDTH), text="name:N"
    )
    return alt.LayerChart(layer=[bands, rules, text])


def _ends(band: Mapping[str, float]) -> dict[str, float]:
    return {"low": band["low"], "high": band["high"]}
