"""The paper's figures: cumulative regret over time, with 95 % bands (Appendix B).

Lines are labelled where they end and differ in dash as well as in colour, so that the figure
reads without a legend, and in grey.
"""

import altair as alt
import polars as pl

from shoal.figures.style import STYLE, colour_and_dash, end_labels, label_places

WIDTH, HEIGHT = 560, 340


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
    labels = end_labels(label_places(curves, "policy", "round"), "policy", "round", colour)
    layers = [bands, lines, labels]
    return alt.LayerChart(layer=layers, width=WIDTH, height=HEIGHT, title=title, config=STYLE)
