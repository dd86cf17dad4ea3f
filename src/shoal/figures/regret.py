"""The paper's figures: cumulative regret over time, with 95 % bands (Appendix B).

Lines are labelled where they end and differ in dash as well as in colour, so that the figure
reads without a legend, and in grey.
"""

from __future__ import annotations

import altair as alt
import polars as pl

COLOURS = ["#1b6ca8", "#d1495b", "#2e8b57", "#8a5a9e", "#c77d0a", "#4a4a4a", "#159a9c", "#7a4419"]
DASHES = [[1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [5, 2], [12, 3], [3, 1], [1, 3]]
WIDTH, HEIGHT, LABEL_GAP = 560, 340, 0.05


def regret_figures(curves: pl.DataFrame) -> dict[str, alt.LayerChart]:
    """Return a figure for each class of instances; see ``Comparison.curves`` for the columns."""
    return {
        str(name): regret_figure(part, title=f"{name} instances")
        for (name,), part in curves.group_by("instance", maintain_order=True)
    }


def regret_figure(curves: pl.DataFrame, *, title: str) -> alt.LayerChart:
    """Draw mean cumulative regret with its band for every policy."""
    policies = curves["policy"].unique(maintain_order=True).to_list()
    colour, dash = colour_and_dash("policy", policies)
    rounds = alt.X("round:Q", title="round").axis(format="~s", grid=False)
    regret = alt.Y("mean:Q", title="cumulative regret, all users").axis(format="~s")
    base = alt.Chart(curves)
    bands = base.mark_area(color="#888888", opacity=0.25).encode(
        x=rounds, y=alt.Y("low:Q", title=""), y2="high:Q", detail="policy:N"
    )
    lines = base.mark_line(strokeWidth=2).encode(x=rounds, y=regret, color=colour, strokeDash=dash)
    labels = (
        alt.Chart(label_places(curves, "policy", "round"))
        .mark_text(align="left", dx=6, fontSize=12)
        .encode(x="round:Q", y="place:Q", text="policy:N", color=colour)
    )
    figure: alt.LayerChart = (
        alt.layer(bands, lines, labels)
        .properties(width=WIDTH, height=HEIGHT, title=title)
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, gridColor="#e4e4e4")
        .configure_title(anchor="start", fontSize=14)
    )
    return figure


def colour_and_dash(column: str, names: list[str]) -> tuple[alt.Color, alt.StrokeDash]:
    """Give each line a colour and a dash of its own."""
    dash = alt.StrokeDash(f"{column}:N", legend=None, sort=names).scale(
        domain=names, range=[DASHES[i % len(DASHES)] for i in range(len(names))]
    )
    colour = alt.Color(f"{column}:N", legend=None, sort=names).scale(
        domain=names, range=[COLOURS[i % len(COLOURS)] for i in range(len(names))]
    )
    return colour, dash


def label_places(
    curves: pl.DataFrame,
    column: str,
    along: str,
    *,
    value: str = "mean",
    height: float | None = None,
) -> pl.DataFrame:
    """Put each line's label at its end, moved up where it would lie on the one below.

    The gap is a share of the figure's ``height``, which by default reaches from 0 up to the
    highest band.
    """
    ends = curves.group_by(column, maintain_order=True).last().sort(value)
    if height is None:
        height = curves.select(pl.max_horizontal(value, "high").max()).item()
    gap = LABEL_GAP * height
    places: list[float] = []
    for end in ends[value]:
        places.append(max(end, places[-1] + gap) if places else end)
    return ends.select(column, along, place=pl.Series(places, dtype=pl.Float64))
