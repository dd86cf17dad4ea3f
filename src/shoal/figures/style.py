"""What all figures share: colours, dashes, the line that matters, labels at its end, files."""

from collections.abc import Iterable, Mapping
from itertools import cycle, islice
from math import exp, log
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import vl_convert

from shoal.figures.inputs import check_figures, file_names
from shoal.palette import LIGHT

COLOURS = list(LIGHT.colours)
DASHES = [[1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [5, 2], [12, 3], [3, 1], [1, 3]]
FLAGSHIP = "shoal"
"""The policy whose line is the widest, on top, and in the first colour."""

LINE_WIDTH, FLAGSHIP_WIDTH = 1.6, 3.6
PIXELS_PER_POINT = 2.0
LABEL_GAP = 0.055
"""The least distance of two labels, as a share of the figure's height."""

STYLE = {
    "view": {"stroke": None},
    "axis": {
        "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
        "gridColor": LIGHT.line, "labelColor": LIGHT.muted, "titleColor": LIGHT.muted,
        "domainColor": LIGHT.muted, "tickColor": LIGHT.muted,
    },
    "title": {"anchor": "start", "fontSize": 14, "color": LIGHT.text},
}  # fmt: skip
"""The fonts and the grid, as the ``config`` of a figure."""


def is_flagship(name: str) -> bool:
    """Whether a line is the flagship's, with options or without."""
    return name.partition(" ")[0] == FLAGSHIP


def cycled(names: list[str], values: list[Any]) -> alt.Scale:
    """Give each name a value of its own; after the last value comes the first again.

    The flagship has the first value, if it is among the names, and nobody else before the last.
    """
    first = [name for name in names if is_flagship(name)][:1]
    rest = [name for name in names if name not in first]
    skip = 1 if first else 0
    others = islice(cycle([*values[skip:], *values[:skip]]), len(rest))
    by_name = dict(zip([*first, *rest], [*values[:skip], *others], strict=True))
    return alt.Scale(domain=names, range=[by_name[name] for name in names])


def colour_and_dash(column: str, names: list[str]) -> tuple[alt.Color, alt.StrokeDash]:
    """Give each line a colour and a dash of its own."""
    shared: dict[str, Any] = {"shorthand": f"{column}:N", "legend": None, "sort": names}
    return (
        alt.Color(**shared, scale=cycled(names, COLOURS)),
        alt.StrokeDash(**shared, scale=cycled(names, DASHES)),
    )


def lines(
    frame: pl.DataFrame,
    column: str,
    x: alt.X,
    y: alt.Y,
    *,
    names: list[str] | None = None,
    legend: alt.Legend | None = None,
) -> list[alt.Chart]:
    """Draw a line for each name in the column; the flagship's comes last and is the widest.

    ``names`` are those of all figures that are to have the same colours.
    """
    colour, dash = colour_and_dash(
        column, names or frame[column].unique(maintain_order=True).to_list()
    )
    if legend:
        colour = colour.legend(legend)
    layers = []
    for flagship, width in ((False, LINE_WIDTH), (True, FLAGSHIP_WIDTH)):
        part = frame.filter(_of_flagship(column) == flagship)
        if len(part):
            line = alt.Chart(part).mark_line(strokeWidth=width)
            layers.append(line.encode(x=x, y=y, color=colour, strokeDash=dash))
    return layers


def end_labels(
    places: pl.DataFrame, column: str, along: str, colour: alt.Color, *, dx: int = 6
) -> list[alt.Chart]:
    """Write each line's name where ``label_places`` puts it, the flagship's in bold."""
    layers = []
    for flagship in (False, True):
        part = places.filter(_of_flagship(column) == flagship)
        if len(part):
            text: alt.Chart = alt.Chart(part).mark_text(
                align="left", dx=dx, fontSize=12, fontWeight="bold" if flagship else "normal"
            )
            layers.append(
                text.encode(x=f"{along}:Q", y="place:Q", text=f"{column}:N", color=colour)
            )
    return layers


def short_numbers(**options: Any) -> alt.Axis:
    """Return an axis whose labels read 0, 2k, 1M, each with its own unit."""
    return alt.Axis(labelExpr="format(datum.value, '~s')", **options)


def label_places(
    curves: pl.DataFrame,
    column: str,
    along: str,
    *,
    height: float | None = None,
    domain: tuple[float, float] | None = None,
) -> pl.DataFrame:
    """Put each line's label at its end, moved up where it would lie on the one below.

    The gap is a share of the figure's ``height``, which by default reaches from 0 up to the
    highest band; on a logarithmic axis, of its ``domain``.
    """
    ends = curves.group_by(column, maintain_order=True).last().sort("mean")
    values = ends["mean"].to_list()
    if domain:
        height = log(domain[1] / domain[0])
        values = [log(max(value, domain[0])) for value in values]
    elif height is None:
        height = curves.select(pl.max_horizontal("mean", "high").max()).item()
    gap = LABEL_GAP * height
    places: list[float] = []
    for value in values:
        places.append(max(value, places[-1] + gap) if places else value)
    if domain:
        highest = log(domain[1])
        for below, place in enumerate(reversed(places)):  # none above the axis
            places[-1 - below] = min(place, highest - below * gap)
        places = [exp(place) for place in places]
    return ends.select(column, along, place=pl.Series(places, dtype=pl.Float64))


def save(figure: alt.TopLevelMixin, path: str | Path) -> list[Path]:
    """Write ``path`` with .png and .svg, without a browser, and return both paths."""
    check_figures("figure", [figure])
    png, svg = file_names(path, (".png", ".svg"))
    spec = figure.to_json()
    png.write_bytes(vl_convert.vegalite_to_png(spec, scale=PIXELS_PER_POINT))
    svg.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
    return [png, svg]


def side_by_side(
    figures: Iterable[alt.LayerChart] | Mapping[str, alt.LayerChart] | alt.LayerChart,
) -> alt.LayerChart | alt.HConcatChart:
    """Put figures beside each other, in one style; a single one stays as it is.

    They may be those of ``regret_figures``, by name.
    """
    if isinstance(figures, alt.TopLevelMixin) or not isinstance(figures, Iterable):
        figures = [figures]
    charts = list(figures.values() if isinstance(figures, Mapping) else figures)
    check_figures("figures", charts)
    if len(charts) == 1:
        single: alt.LayerChart = charts[0]
        return single
    panels = [chart.copy() for chart in charts]
    for panel in panels:
        panel.config = alt.Undefined
    return alt.hconcat(*panels, spacing=40, config=STYLE)


def _of_flagship(column: str) -> pl.Expr:
    return pl.col(column).str.splitn(" ", 2).struct[0] == FLAGSHIP
