"""The paper's figures: cumulative regret over time, with 95 % bands (Appendix B).

Regret is drawn on a logarithmic axis: policies differ by tens of times, and single runs of one
policy by several times, which thin lines show. Lines are labelled where they end and differ in
dash as well as in colour, so that the figure reads without a legend, and in grey.
"""

from math import ceil, floor, log10
from typing import Any

import altair as alt
import polars as pl

from shoal.figures.inputs import Compared, check_frame, check_one_class
from shoal.figures.style import (
    STYLE,
    colour_and_dash,
    end_labels,
    label_places,
    lines,
    short_numbers,
)

WIDTH, HEIGHT = 560, 360
CURVES = ("round", "mean", "low", "high")
RECORDS = ("run", "round", "regret")
"""The columns of numbers that are drawn."""
RUN_POINTS = 50
"""Checkpoints of a single run that are drawn, at most."""
MIN_SHARE = 1e-9
"""Regret below this share of the highest is a rounding error."""
MAX_RUNS = 100
"""Single runs of a policy that are drawn, at most."""
MAX_CHART_ROWS = 5_000
"""Rows of data that Altair takes."""


def regret_figures(
    curves: pl.DataFrame | Compared, *, records: pl.DataFrame | None = None
) -> dict[str, alt.LayerChart]:
    """Return a figure for each class of instances.

    Parameters
    ----------
    curves
        The mean over runs and its interval: ``Comparison.curves()``; or a whole ``Comparison``,
        which has the records too. A dataframe may be of any library, as those of pandas.
    records
        The single runs, which are drawn as thin lines: ``Comparison.records``.
    """
    if isinstance(curves, Compared):
        records = curves.records if records is None else records
        curves = curves.curves()
    curves, records = _check_frames(curves, records, ("instance", "policy"))
    return {
        str(name): regret_figure(
            part,
            records=None if records is None else records.filter(pl.col("instance") == name),
            title=f"{name} instances",
        )
        for (name,), part in curves.group_by("instance", maintain_order=True)
    }


def regret_figure(
    curves: pl.DataFrame, *, records: pl.DataFrame | None = None, title: str
) -> alt.LayerChart:
    """Draw mean cumulative regret with its band for every policy, and each of the ``records``.

    All are of one class of instances; ``regret_figures`` draws several.
    """
    curves, records = _check_frames(curves, records, ("policy",))
    check_one_class("curves", curves)
    if records is not None:
        check_one_class("records", records)
    policies = curves["policy"].unique(maintain_order=True).to_list()
    colour, _ = colour_and_dash("policy", policies)
    runs = None if records is None else _runs(records, policies)
    domain = _domain(curves, runs)
    scale = alt.Scale(type="log", domain=list(domain), clamp=True, nice=False)
    rounds = alt.X("round:Q", title="round", axis=short_numbers(grid=False))
    axis = short_numbers(values=_ticks(*domain))
    regret = alt.Y(
        "mean:Q", title="cumulative regret, all users (log scale)", axis=axis, scale=scale
    )
    bands = (
        alt.Chart(curves)
        .mark_area(opacity=0.22)
        .encode(x=rounds, y=alt.Y("low:Q", title="", scale=scale), y2="high:Q", color=colour)
    )
    layers: list[alt.Chart] = [bands]
    if runs is not None:
        layers.append(
            alt.Chart(runs.filter(pl.col("regret") >= domain[0]))
            .mark_line(strokeWidth=0.7, opacity=0.4)
            .encode(
                x=rounds, y=alt.Y("regret:Q", title="", scale=scale), color=colour, detail="run:N"
            )
        )
    positive = curves.filter(pl.col("mean") >= domain[0])
    layers += lines(positive, "policy", rounds, regret, names=policies)
    places = label_places(curves, "policy", "round", domain=domain)
    layers += end_labels(places, "policy", "round", colour)
    return alt.LayerChart(layer=layers, width=WIDTH, height=HEIGHT, title=title, config=STYLE)


def _check_frames(
    curves: Any, records: Any, texts: tuple[str, ...]
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Return both as frames of polars; there may be no records, or none of some policies."""
    example = "Comparison.curves()"
    curves = check_frame("curves", curves, example, texts=texts, numbers=CURVES)
    if records is not None:
        example = "Comparison.records"
        records = check_frame(
            "records", records, example, texts=texts, numbers=RECORDS, least_rows=0
        )
    return curves, records


def _domain(curves: pl.DataFrame, runs: pl.DataFrame | None) -> tuple[float, float]:
    """Return the ends of the axis: the least regret above 0 of a line, and the highest of all.

    A line starts with its first regret above 0; a band is cut at the axis.
    """
    drawn = curves["mean"].to_list() + ([] if runs is None else runs["regret"].to_list())
    highest = max([*drawn, *curves["high"].drop_nulls()])
    if highest <= 0:
        return 0.5, 1.0  # nobody has lost anything
    return min(regret for regret in drawn if regret > MIN_SHARE * highest), highest * 1.05


def _ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten between two numbers."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    steps = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    return [step for step in steps if low <= step <= high]


def _runs(records: pl.DataFrame, policies: list[str]) -> pl.DataFrame:
    """Return the runs of the policies at an even sample of checkpoints, the last one included."""
    records = records.filter(pl.col("policy").is_in(policies), pl.col("run") < MAX_RUNS)
    n_runs = records.select("policy", "run").n_unique()
    n_points = max(2, min(RUN_POINTS, MAX_CHART_ROWS // max(n_runs, 1)))
    rounds = records["round"].unique().sort()
    chosen = rounds.reverse().gather_every(-(-len(rounds) // n_points))
    return records.filter(pl.col("round").is_in(chosen.implode()))
