"""Writing a figure as PNG and SVG, without a browser or a network."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import vl_convert

PIXELS_PER_POINT = 2.0


def save(figure: alt.TopLevelMixin, path: Path) -> list[Path]:
    """Write ``path`` with .png and .svg and return both paths."""
    spec = figure.to_json()
    png, svg = path.with_suffix(".png"), path.with_suffix(".svg")
    png.write_bytes(vl_convert.vegalite_to_png(spec, scale=PIXELS_PER_POINT))
    svg.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
    return [png, svg]
