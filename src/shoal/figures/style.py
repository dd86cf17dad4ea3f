"""What all figures share: colours, dashes, labels at the ends of lines, fonts, files."""

from itertools import cycle, islice
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import vl_convert

COLOURS = ["#1b6ca8", "#d1495b", "#2e8b57", "#8a5a9e", "#c77d0a", "#4a4a4a", "#159a9c", "#7a4419"]
DASHES = [[1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [5, 2], [12, 3], [3, 1], [1, 3]]
PIXELS_PER_POINT = 2.0
LABEL_GAP = 0.05
"""The least distance of two labels, as a share of the figure's height."""

STYLE = {
    "view": {"stroke": None},
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "gridColor": "#e4e4e4"},
    "title": {"anchor": "start", "fontSize": 14},
}
"""The fonts and the grid, as the ``config`` of a figure."""


def end_labels(
    places: pl.DataFrame, column: str, along: str, colour: alt.Color, *, dx: int = 6
) -> alt.Chart:
    """Write each line's name where ``label_places`` puts it."""
    text: alt.Chart = alt.Chart(places).mark_text(align="left", dx=dx, fontSize=12)
    return text.encode(x=f"{along}:Q", y="place:Q", text=f"{column}:N", color=colour)


def cycled(names: list[str], values: list[Any]) -> alt.Scale:
    """Give each name a value of its own; after the last value comes the first again."""
    return alt.Scale(domain=names, range=list(islice(cycle(values), len(names))))


def colour_and_dash(column: str, names: list[str]) -> tuple[alt.Color, alt.StrokeDash]:
    """Give each line a colour and a dash of its own."""
    shared: dict[str, Any] = {"shorthand": f"{column}:N", "legend": None, "sort": names}
    return (
        alt.Color(**shared, scale=cycled(names, COLOURS)),
        alt.StrokeDash(**shared, scale=cycled(names, DASHES)),
    )


def label_places(
    curves: pl.DataFrame, column: str, along: str, *, height: float | None = None
) -> pl.DataFrame:
    """Put each line's label at its end, moved up where it would lie on the one below.

    The gap is a share of the figure's ``height``, which by default reaches from 0 up to the
    highest band.
    """
    ends = curves.group_by(column, maintain_order=True).last().sort("mean")
    if height is None:
        height = curves.select(pl.max_horizontal("mean", "high").max()).item()
    gap = LABEL_GAP * height
    places: list[float] = []
    for end in ends["mean"]:
        places.append(max(end, places[-1] + gap) if places else end)
    return ends.select(column, along, place=pl.Series(places, dtype=pl.Float64))


def save(figure: alt.TopLevelMixin, path: Path) -> list[Path]:
    """Write ``path`` with .png and .svg, without a browser, and return both paths."""
    spec = figure.to_json()
    png, svg = path.with_suffix(".png"), path.with_suffix(".svg")
    png.write_bytes(vl_convert.vegalite_to_png(spec, scale=PIXELS_PER_POINT))
    svg.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
    return [png, svg]


def side_by_side(figures: list[alt.LayerChart]) -> alt.LayerChart | alt.HConcatChart:
    """Put figures beside each other, in one style; a single one stays as it is."""
    if len(figures) == 1:
        return figures[0]
    panels = [figure.copy() for figure in figures]
    for panel in panels:
        panel.config = alt.Undefined
    return alt.hconcat(*panels, spacing=40, config=STYLE)
