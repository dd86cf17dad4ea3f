"""One HTML page with everything in it: figures, tables, configuration. No network."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

import altair as alt
import vl_convert
from jinja2 import Environment, PackageLoader
from markupsafe import Markup, escape

INK = "#010203"
"""Stands for the page's own colour of text, which differs between light and dark."""

TITLE_CHARACTERS = 42
"""Characters in a line of a figure's title."""

NO_BREAK = "\N{NO-BREAK SPACE}"
SIZE = re.compile(r'width="(\d+)" height="(\d+)" viewBox="[^"]*"')


@dataclass(frozen=True)
class Table:
    """Rows with a value for each column."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    @property
    def numeric(self) -> list[bool]:
        """Return for each column whether it has numbers alone, apart from missing values."""
        columns = zip(*self.rows, strict=True)
        return [
            all(isinstance(value, int | float | None) for value in column) for column in columns
        ]


@dataclass(frozen=True)
class Section:
    """A part of the page: words, figures, a table."""

    title: str
    text: str = ""
    figures: Sequence[alt.TopLevelMixin] = field(default_factory=tuple)
    table: Table | None = None


def report_page(
    title: str, sections: Sequence[Section], *, configuration: Mapping[str, Any], version: str
) -> str:
    """Return the page; ``configuration`` and ``version`` stand at its end."""
    templates = Environment(
        loader=PackageLoader("shoal.figures", "page"), autoescape=True, trim_blocks=True
    )
    templates.filters |= {"inline_svg": inline_svg, "as_text": _as_text}
    return templates.get_template("page.html").render(
        title=title,
        sections=sections,
        configuration=json.dumps(configuration, indent=2, sort_keys=True),
        version=version,
    )


def inline_svg(figure: alt.TopLevelMixin, *, width: int = 290, height: int = 290) -> Markup:
    """Draw a figure for a page: small enough for a phone, in the page's colour of text."""
    spec = figure.to_dict()
    title = str(spec.get("title", ""))
    spec |= {"width": width, "background": "transparent", "title": _lines(title)}
    if spec.get("height") is None or spec["height"] > height:
        spec["height"] = height
    spec.setdefault("config", {}).update(
        view={"stroke": None},
        axis={
            "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
            "labelColor": INK, "titleColor": INK, "domainColor": INK, "tickColor": INK,
            "gridColor": INK, "gridOpacity": 0.15, "domainOpacity": 0.5, "tickOpacity": 0.5,
        },
        axisX={"tickCount": 6, "labelOverlap": True},
        axisY={"titlePadding": 10},
        title={"anchor": "start", "fontSize": 13, "color": INK},
    )  # fmt: skip
    svg = vl_convert.vegalite_to_svg(json.dumps(spec)).replace(INK, "currentColor")
    labelled = f'<svg role="img" aria-label="{escape(title)}" '
    return Markup(_widened(svg, beside=width).replace("<svg ", labelled, 1))


def _lines(title: str) -> list[str]:
    """Break a long title, after commas alone.

    >>> _lines("instances: clustered, least group C: 10, rounds T: 100")
    ['instances: clustered, least group C: 10,', 'rounds T: 100']
    """
    title_text = title.replace(" ", NO_BREAK).replace(f",{NO_BREAK}", ", ")
    return [
        line.replace(NO_BREAK, " ")
        for line in wrap(title_text, TITLE_CHARACTERS, break_long_words=False)
    ]


def _widened(svg: str, *, beside: int) -> str:
    """Leave room for text that comes out wider where it is read: fonts differ by a fifth."""

    def wider(size: re.Match[str]) -> str:
        width = int(size[1]) + (int(size[1]) - beside) // 5
        return f'width="{width}" height="{size[2]}" viewBox="0 0 {width} {size[2]}"'

    return SIZE.sub(wider, svg, count=1)


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
