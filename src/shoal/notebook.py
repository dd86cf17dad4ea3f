"""HTML for notebooks: a small table with a caption, without style sheets and scripts."""

from collections.abc import Iterable, Sequence
from html import escape


def html_table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *notes: str
) -> str:
    """Return a table, with a paragraph for each note below it.

    Numbers stand at the right of their cells.

    >>> html_table("Plan", ["arm"], [["noon"]])
    '<table><caption style="white-space: nowrap; text-align: left">Plan</caption><thead><tr>\
<th style="text-align: left">arm</th></tr></thead><tbody><tr><td style="text-align: left">noon</td>\
</tr></tbody></table>'
    """
    cells = [list(row) for row in rows]
    sides = [
        "right" if any(isinstance(row[place], int | float) for row in cells) else "left"
        for place in range(len(columns))
    ]
    head = _row("th", columns, sides)
    body = "".join(f"<tr>{_row('td', map(as_text, row), sides)}</tr>" for row in cells)
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (
        f'<table><caption style="white-space: nowrap; text-align: left">{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"
    )


def _row(tag: str, texts: Iterable[str], sides: Sequence[str]) -> str:
    return "".join(
        f'<{tag} style="text-align: {side}">{escape(text)}</{tag}>'
        for text, side in zip(texts, sides, strict=True)
    )


def as_text(value: object) -> str:
    """Write a cell: thousands apart, few digits, nothing for None.

    >>> as_text(1234567.8), as_text(0.123456), as_text(None), as_text({"gamma": 2.0})
    ('1,234,568', '0.123', '', 'gamma=2.0')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items())
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
