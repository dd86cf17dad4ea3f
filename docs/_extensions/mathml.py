"""Render formulas as MathML while the site is built: no script, no fonts, no network.

Docutils has the converter; Sphinx only lets it be called as a renderer of its own.
"""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

SLASH = re.compile(r"<mo([^>]*)>/</mo>")  # browsers leave room around it as if it were a sign
LOG = logging.getLogger(__name__)


def visit_math(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def visit_math_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on lines of its own; a wide one scrolls, with the keyboard too."""
    formula = _mathml(node, as_block=True)
    translator.body.append(f'<div class="formula" tabindex="0">{formula}</div>\n')
    raise nodes.SkipNode


def _mathml(node: nodes.Element, *, as_block: bool) -> str:
    try:
        formula = tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        LOG.warning("not a formula: %s (%s)", node.astext(), error, location=node)
        return ""
    return SLASH.sub(r'<mo\1 lspace="0" rspace="0">/</mo>', formula)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer under the name ``mathml``."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
