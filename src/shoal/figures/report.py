"""One HTML page with everything in it: figures, tables, configuration. No network."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from string import Template
from textwrap import wrap
from typing import Any

import altair as alt
import vl_convert

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
    page = files("shoal.figures").joinpath("page")
    parts = {name: page.joinpath(name).read_text("utf-8") for name in ("style.css", "sort.js")}
    return Template(page.joinpath("page.html").read_text("utf-8")).substitute(
        title=escape(title),
        style=parts["style.css"],
        script=parts["sort.js"],
        sections="\n".join(map(_section, sections)),
        configuration=escape(json.dumps(configuration, indent=2, sort_keys=True)),
        version=escape(version),
    )


def _section(section: Section) -> str:
    figures = "".join(f"<figure>{inline_svg(figure)}</figure>" for figure in section.figures)
    return (
        f"<section><h2>{escape(section.title)}</h2>"
        + (f"<p>{escape(section.text)}</p>" if section.text else "")
        + (f'<div class="figures">{figures}</div>' if figures else "")
        + (_table(section.table) if section.table else "")
        + "</section>"
    )


def inline_svg(figure: alt.TopLevelMixin, *, width: int = 290, height: int = 290) -> str:
    """Draw a figure for a page: small enough for a phone, in the page's colour of text."""
    spec = figure.to_dict()
    title = str(spec.get("title", ""))
    spec |= {"width": width, "background": "transparent", "title": _lines(title)}
    if spec.get("height") is None or spec["height"] > height:
        spec["height"] = height
    config = spec.setdefault("config", {})
    config["view"] = {"stroke": None}
    config["axis"] = {
        "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
        "labelColor": INK, "titleColor": INK, "domainColor": INK, "tickColor": INK,
        "gridColor": INK, "gridOpacity": 0.15, "domainOpacity": 0.5, "tickOpacity": 0.5,
    }  # fmt: skip
    config["axisX"] = {"tickCount": 6, "labelOverlap": True}
    config["axisY"] = {"titlePadding": 10}
    config["title"] = {"anchor": "start", "fontSize": 13, "color": INK}
    svg = vl_convert.vegalite_to_svg(json.dumps(spec)).replace(INK, "currentColor")
    name = escape(title, quote=True)
    return _widened(svg, beside=width).replace("<svg ", f'<svg role="img" aria-label="{name}" ', 1)


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


def _table(table: Table) -> str:
    right = [
        bool(table.rows) and all(_is_number(row[i]) or row[i] is None for row in table.rows)
        for i in range(len(table.columns))
    ]
    head = "".join(
        f'<th scope="col"{_side(right[i])}><button type="button">{escape(column)}</button></th>'
        for i, column in enumerate(table.columns)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td{_side(right[i])} data-value="{_value(value)}">{escape(_as_text(value))}</td>'
            for i, value in enumerate(row)
        )
        + "</tr>"
        for row in table.rows
    )
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _side(right: bool) -> str:
    return ' class="number"' if right else ""


def _value(value: object) -> str:
    return "" if value is None else escape(str(value), quote=True)


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
