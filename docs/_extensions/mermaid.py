"""Draw Mermaid diagrams as SVG while the site is built: no script, no network."""

from __future__ import annotations

import hashlib

from docutils import nodes
from docutils.parsers.rst import Directive
from merman import Merman
from sphinx.application import Sphinx


class Mermaid(Directive):
    """A fenced block of the language ``mermaid``."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the drawing, whose ids differ from those of the page's other drawings."""
        text = "\n".join(self.content)
        name = "diagram-" + hashlib.sha256(text.encode()).hexdigest()[:8]
        svg = " ".join(Merman().render_svg(text, None).replace("merman", name).split())
        return [nodes.raw("", f'<div class="diagram" tabindex="0">{svg}</div>', format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("mermaid", Mermaid)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
