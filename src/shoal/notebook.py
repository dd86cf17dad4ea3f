"""HTML for notebooks: a small table with a caption, without style sheets and scripts."""

from collections.abc import Iterable, Sequence
from html import escape


def html_table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *notes: str
) -> str:
    """Return a table, with a paragraph for each note below it.

    >>> html_table("Plan", ["arm", "users"], [(0, 1200)])
    '<table><caption>Plan</caption><thead><tr><th>arm</th><th>users</th></tr></thead>\
<tbody><tr><td>0</td><td>1,200</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(as_text(cell))}</td>' for cell in row)}</tr>" for row in rows
    )
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{below}"
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
