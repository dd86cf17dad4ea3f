"""Offer every tutorial and the gallery as a notebook, made from the page itself.

Python blocks become cells, commands become cells that call them, and the output that a page shows
is that of its cell. What the tests run is the page, so a notebook has no text or code of its own,
but for the first cell of one that calls commands. Links lead to the pages of the site beside it.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

FOLDER = "notebooks"
PAGES = ("tutorials/", "gallery")
"""How the names of pages begin that are notebooks too."""

SETUP = """\
import os
import sys
from pathlib import Path

# Commands: the shoal beside this Python, and outputs without progress bars.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ["TERM"] = "dumb"
"""
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$\n?", re.M | re.S)
IMAGE = re.compile(r"!\[[^\]]*\]\([^)\s]+\)")
LINK = re.compile(r"\]\((?!http)(?P<page>[^)\s#]*?)(?:\.md)?(?P<anchor>#[^)\s]+)?\)")
ADMONITION = re.compile(r"^:::\{(?P<kind>\w+)\}\n(?P<body>.*?)^:::$", re.M | re.S)
Cell = dict[str, Any]


def cells(text: str, name: str) -> list[Cell]:
    """Return the cells of the page of this name; blocks that can't be run stay in the prose."""
    result: list[Cell] = []
    prose, position = "", 0
    for match in BLOCK.finditer(text):
        prose += text[position : match.start()]
        position = match.end()
        source = _source(match["language"], match["body"])
        if source is not None:
            result += [*_markdown(prose, name), _code(source)]
            prose = ""
        elif match["language"] == "output" and not prose.strip():
            lines = match["body"].splitlines(keepends=True)
            result[-1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": lines}]
        else:
            prose += match[0]
    return [*result, *_markdown(prose + text[position:], name)]


def _source(language: str, body: str) -> str | None:
    """Return the code of a block, if it is one that a notebook can run."""
    if language == "python":
        return body
    if language == "console":
        return "".join(
            f"!{line.removeprefix('$ ')}" if line.startswith("$ ") else line
            for line in body.splitlines(keepends=True)
        )
    return None


def _markdown(prose: str, name: str) -> Iterator[Cell]:
    """Yield the prose as a cell, with links to the site, notes as quotes and without images."""
    linked = LINK.sub(lambda match: f"]({_page(match, name)})", IMAGE.sub("", prose))
    plain = ADMONITION.sub(_quote, linked).strip()
    if plain:
        yield _cell("markdown", plain)


def _page(match: re.Match[str], name: str) -> str:
    """Return a link of the page of this name as one from the folder of notebooks."""
    page = posixpath.join(posixpath.dirname(name), match["page"]) if match["page"] else name
    return f"{posixpath.normpath(f'../{page}')}.html{match['anchor'] or ''}"


def _quote(match: re.Match[str]) -> str:
    """Return an admonition as what Jupyter shows."""
    return "\n".join(f"> {line}" for line in match["body"].splitlines())


def _code(source: str) -> Cell:
    return _cell("code", source, execution_count=None, outputs=[])


def _cell(kind: str, source: str, **more: Any) -> Cell:
    return {
        "cell_type": kind,
        "metadata": {},
        "source": source.strip().splitlines(keepends=True),
        **more,
    }


def notebook(text: str, name: str) -> dict[str, Any]:
    """Return the notebook of a page, in version 4.5 of Jupyter's format."""
    content = cells(text, name)
    if any(cell["source"][0].startswith("!") for cell in content if cell["cell_type"] == "code"):
        content.insert(1, _code(SETUP))
    numbered = [{**cell, "id": f"cell-{i}"} for i, cell in enumerate(content)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "sources": _digest(numbered)}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": numbered}


def _digest(content: list[Cell]) -> str:
    """Return a hash of what the cells say, whatever they print."""
    sources = [[cell["cell_type"], "".join(cell["source"])] for cell in content]
    return sha256(json.dumps(sources).encode()).hexdigest()


def save(content: dict[str, Any], target: Path) -> None:
    """Write a notebook; one that a reader has changed is kept beside it, under another name."""
    if target.exists():
        before = json.loads(target.read_text(encoding="utf-8"))
        if before["metadata"].get("sources") != _digest(before["cells"]):
            names = (target.with_stem(f"{target.stem}-changed-{i}") for i in count(1))
            target.rename(next(name for name in names if not name.exists()))
    text = json.dumps(content, ensure_ascii=False, indent=1)
    target.write_text(text, encoding="utf-8")


def add_link(app: Sphinx, doctree: nodes.document) -> None:
    """Put a link to the notebook below the title of its page."""
    name = app.env.docname
    title = doctree.next_node(nodes.title)
    if name.startswith(PAGES) and title is not None:
        up = "../" * name.count("/")
        link = nodes.reference("", "Download this page as a notebook", refuri=_file(name, up))
        title.parent.insert(1, nodes.paragraph("", "", link, classes=["notebook"]))


def write(app: Sphinx, error: Exception | None) -> None:
    """Write all notebooks beside the site."""
    if error or app.builder.format != "html":
        return
    for name in app.env.found_docs:
        if name.startswith(PAGES):
            text = Path(app.env.doc2path(name)).read_text(encoding="utf-8")
            target = Path(app.outdir, _file(name))
            target.parent.mkdir(exist_ok=True)
            save(notebook(text, name), target)


def _file(name: str, folder: str = "") -> str:
    return f"{folder}{FOLDER}/{PurePosixPath(name).name}.ipynb"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register both steps."""
    app.connect("doctree-read", add_link)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
