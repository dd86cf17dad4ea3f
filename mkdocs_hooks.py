"""Draw the Mermaid diagrams of a page as SVG while the site is built: no script, no network."""

from __future__ import annotations

import re
from typing import Any

from merman import Merman

DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```$", re.M | re.S)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace each Mermaid block of a page by its drawing."""
    count = 0

    def draw(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        svg = Merman().render_svg(match[1], None).replace("merman", f"diagram-{count}")
        return f'<div class="diagram">{" ".join(svg.split())}</div>'

    return DIAGRAM.sub(draw, markdown)
