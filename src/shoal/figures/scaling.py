"""How regret grows with the group size, users, arms and rounds: one panel each, log against log.

Straight lines are powers; policies differ in dash and shape of point as well as in colour.
"""

from typing import Any

import altair as alt
import polars as pl

from shoal.figures.inputs import check_frame
from shoal.figures.style import COLOURS, STYLE, cycled, lines

SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
WIDTH, HEIGHT = 270, 210


def scaling_figure(points: pl.DataFrame, *, title: str) -> alt.ConcatChart:
    """Draw mean regret with its interval against each quantity that is varied: one panel each.

    ``points`` is a dataframe of any library, with the columns ``quantity``, ``value``,
    ``policy``, ``mean``, ``low`` and ``high``.
    """
    points = check_frame(
        "points", points, "that of python -m benchmarks scaling",
        texts=("quantity", "policy"), numbers=("value", "mean", "low", "high"),
    )  # fmt: skip
    policies = points["policy"].unique(maintain_order=True).to_list()
    legend = alt.Legend(orient="top", symbolStrokeWidth=2, symbolSize=70, labelFontSize=12)
    shared: dict[str, Any] = {
        "shorthand": "policy:N", "sort": policies, "title": None, "legend": legend,
    }  # fmt: skip
    colour = alt.Color(**shared, scale=cycled(policies, COLOURS))
    shape = alt.Shape(**shared, scale=cycled(policies, SHAPES))
    # An interval may reach below 0, where a log scale has no place: it is cut at the axis.
    lowest, highest = points.select(pl.min("mean") / 2, pl.max("high")).row(0)
    log = alt.Scale(type="log", domain=[lowest, highest], clamp=True, nice=False)
    regret = alt.Y("mean:Q", title="regret per user", scale=log).axis(format="~s", tickCount=4)
    panels = []
    for (name,), part in points.group_by("quantity", maintain_order=True):
        values = part["value"].unique().sort().to_list()
        x = alt.X("value:Q", title=str(name)).scale(type="log", nice=False, padding=12)
        x = x.axis(values=values, format="~s", grid=False)
        base = alt.Chart(part).encode(x=x, color=colour)
        bars = base.mark_rule(strokeWidth=1.5).encode(
            y=alt.Y("low:Q", title="regret per user", scale=log), y2="high:Q"
        )
        dots = base.mark_point(filled=True, size=55, opacity=1).encode(y=regret, shape=shape)
        curves = lines(part, "policy", x, regret, names=policies, legend=legend)
        panels.append(alt.LayerChart(layer=[bars, *curves, dots], width=WIDTH, height=HEIGHT))
    return alt.concat(*panels, columns=2, spacing=28, title=title, config=STYLE)
