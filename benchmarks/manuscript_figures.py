"""The paper's figures, drawn from its numbers with the package's own style."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from shoal.figures import save
from shoal.figures.style import COLOURS, STYLE, cycled

FONT = "New Computer Modern"  # the paper's own
CONFIG = {**STYLE, "font": FONT}
INSTANCES = ("uniform", "linear")


def draw_figures(numbers: dict[str, Any], folder: Path) -> None:
    """Write all figures as SVG (and PNG) into ``folder``."""
    save(reproduction_figure(numbers["reproduction"]["rows"]), folder / "reproduction")
    save(slope_figure(numbers["slopes"]), folder / "slopes")


def reproduction_figure(rows: list[dict[str, Any]]) -> alt.HConcatChart:
    """Draw the mean regret of every anonymous policy and reading with its interval."""
    frame = (
        pl.DataFrame(rows)
        .filter(pl.col("reading") != "sees every reward")
        .with_columns(
            low=pl.col("mean") - pl.col("half"),
            high=pl.col("mean") + pl.col("half"),
            name=pl.col("policy").str.replace("elimination-", ""),
        )
    )
    order = frame.group_by("name").agg(pl.mean("mean")).sort("mean")["name"].to_list()
    readings = frame["reading"].unique(maintain_order=True).to_list()
    domain = [0, float(frame["high"].max()) * 1.02]  # type: ignore[arg-type]
    panels = []
    for number, instance in enumerate(INSTANCES):
        base = alt.Chart(frame.filter(pl.col("instance") == instance)).encode(
            y=alt.Y("name:N", title=None, sort=order).axis(
                labels=number == 0, ticks=number == 0, labelFontSize=13, labelLimit=200
            ),
            yOffset=alt.YOffset("reading:N", sort=readings),
            color=alt.Color("reading:N", sort=readings, scale=cycled(readings, COLOURS)).legend(
                title=None, orient="bottom", labelFontSize=13, labelLimit=300
            ),
        )
        regret = alt.X("mean:Q", title="total regret").scale(domain=domain)
        regret = regret.axis(format="~s", titleFontSize=13)
        bars = base.mark_rule(strokeWidth=5, opacity=0.45).encode(
            x=alt.X("low:Q", title="total regret"), x2="high:Q"
        )
        points = base.mark_point(filled=True, size=46, opacity=1).encode(x=regret)
        title = f"{instance} instances"
        panels.append(alt.LayerChart(layer=[bars, points], width=285, height=210, title=title))
    return alt.hconcat(*panels, spacing=18, config=CONFIG)


def slope_figure(lines: dict[str, list[dict[str, Any]]]) -> alt.HConcatChart:
    """Draw regret a user against C and against K on logarithmic axes."""
    panels = []
    for quantity in ("C", "K"):
        frame = pl.DataFrame(
            [
                {
                    "line": f"{line['policy'].replace('elimination', 'elim.')}, {line['setting']}",
                    "point": point,
                    # Regret grows with √T: without that all horizons share the axis.
                    "regret": regret / horizon_of(line["setting"]) ** 0.5,
                }
                for line in lines[quantity]
                for point, regret in zip(line["points"], line["regrets"], strict=True)
            ]
        )
        names = frame["line"].unique(maintain_order=True).to_list()
        values = sorted(set(frame["point"].to_list()))
        colour = alt.Color("line:N", sort=names, scale=cycled(names, COLOURS)).legend(
            title=None, orient="bottom", columns=1, labelFontSize=12, labelLimit=420
        )
        chart = (
            alt.Chart(frame, width=285, height=230)
            .mark_line(point=alt.OverlayMarkDef(size=40), strokeWidth=1.8)
            .encode(
                x=alt.X("point:Q", title=quantity)
                .scale(type="log", nice=False)
                .axis(values=values, titleFontSize=13),
                y=alt.Y("regret:Q", title="regret a user / √T")
                .scale(type="log")
                .axis(titleFontSize=13),
                color=colour,
            )
        )
        panels.append(chart)
    figure: alt.HConcatChart = alt.hconcat(*panels, spacing=30, config=CONFIG)
    return figure.resolve_scale(color="independent")  # type: ignore[no-any-return]


def horizon_of(setting: str) -> float:
    """Return the horizon that a line's setting names.

    >>> horizon_of("N = 72, T = 4e+04, played")
    40000.0
    """
    return float(setting.split("T = ")[1].split(",")[0])
