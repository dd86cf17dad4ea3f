"""What all figures share: colours, dashes, labels at the ends of lines, fonts, files."""

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


def styled(figure: Any) -> Any:
    """Set the fonts and the grid."""
    return (
        figure.configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, gridColor="#e4e4e4")
        .configure_title(anchor="start", fontSize=14)
    )


def end_labels(
    places: pl.DataFrame, column: str, along: str, colour: alt.Color, *, dx: int = 6
) -> alt.Chart:
    """Write each line's name where ``label_places`` puts it."""
    labels: alt.Chart = (
        alt.Chart(places)
        .mark_text(align="left", dx=dx, fontSize=12)
        .encode(x=f"{along}:Q", y="place:Q", text=f"{column}:N", color=colour)
    )
    return labels


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


def save(figure: alt.TopLevelMixin, path: Path) -> list[Path]:
    """Write ``path`` with .png and .svg, without a browser, and return both paths."""
    spec = figure.to_json()
    png, svg = path.with_suffix(".png"), path.with_suffix(".svg")
    png.write_bytes(vl_convert.vegalite_to_png(spec, scale=PIXELS_PER_POINT))
    svg.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
    return [png, svg]
