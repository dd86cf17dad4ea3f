"""Link what a page writes as code to where it is documented.

`Plan` or `shoal.bounds` becomes a link to the object's page, `shoal price` one to its section of
the command line. Types in signatures are found by their last name too, because a class is
documented where it is imported from and not in the file that defines it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry, PythonDomain
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

LINKED = (nodes.reference, nodes.title, pending_xref)  # a link in a link is none
COMMAND_LINE = "reference/command-line"
ARRAY = re.compile(
    r"(?:~?numpy\.)?ndarray\[tuple\[(?:~?typing\.)?Any, \.\.\.\], "
    r"(?:~?numpy\.)?dtype\[(?:~?numpy\.)?(\w+)\]\]"
)
ARRAY_LIKE = re.compile(
    r"~?[\w.]*_Buffer \| .*?_NestedSequence\[(?:bool \| int \| float \| )?complex \| bytes \| str\]"
)
COMMAND = re.compile(r"shoal [a-z][a-z -]*")


def documented(env: BuildEnvironment) -> dict[str, tuple[str, ObjectEntry]]:
    """Return the documented objects by full name, and by last name where only one has it."""
    domain = env.get_domain("py")
    assert isinstance(domain, PythonDomain)
    names = {name: (name, entry) for name, entry in domain.objects.items()}
    by_last_name = defaultdict(list)
    for name, entry in domain.objects.items():
        if entry.objtype in {"class", "exception", "function"} and not entry.aliased:
            by_last_name[name.rpartition(".")[2]].append((name, entry))
    return names | {last: found[0] for last, found in by_last_name.items() if len(found) == 1}


def sections(env: BuildEnvironment) -> dict[str, str]:
    """Return the anchors of the commands by their names."""
    headings = env.tocs[COMMAND_LINE].findall(nodes.reference)
    return {h.astext(): h["anchorname"].lstrip("#") for h in headings if h.astext()[:6] == "shoal "}


def ancestors(node: nodes.Node) -> Iterator[nodes.Node]:
    """Yield what a node is in, from the inside out."""
    while node.parent is not None:
        node = node.parent
        yield node


class LinkCode(SphinxPostTransform):
    """Turn code that names an object or a command into a link."""

    default_priority = 200

    def run(self, **_: object) -> None:
        """Go through the literals of a page that are in no link and in no heading."""
        objects, commands = documented(self.env), sections(self.env)
        for literal in list(self.document.findall(nodes.literal)):
            if any(isinstance(above, LINKED) for above in ancestors(literal)):
                continue
            link = self.link(literal.astext(), objects, commands)
            if link is not None:
                literal.parent.replace(literal, link)
                link.append(literal)

    def link(
        self, text: str, objects: dict[str, tuple[str, ObjectEntry]], commands: dict[str, str]
    ) -> nodes.reference | None:
        """Return a link for the text, if it names something; never to the page itself."""
        if COMMAND.fullmatch(text) and text in commands:
            page, anchor = COMMAND_LINE, commands[text]
        elif (text[:1].isupper() or "." in text) and text in objects:
            page, anchor = objects[text][1].docname, objects[text][1].node_id
        else:
            return None
        here = self.env.current_document.docname
        if page == here:
            return None
        return make_refnode(self.app.builder, here, page, anchor, [])


def by_last_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.reference | None:
    """Resolve a type of a signature by its last name."""
    match = documented(env).get(node.get("reftarget", "").rpartition(".")[2])
    if node.get("refdomain") != "py" or match is None:
        return None
    _, entry = match
    return make_refnode(
        app.builder, node["refdoc"], entry.docname, entry.node_id, [content], match[0]
    )


def shorten_docstring(
    app: Sphinx, what: str, name: str, item: object, options: object, lines: list[str]
) -> None:
    """Write the types of arrays as they are written in the source."""
    lines[:] = [short(line) for line in lines]


def short(text: str) -> str:
    """Return the text with ArrayLike, and ndarray[float64], in place of what they stand for."""
    return ARRAY_LIKE.sub("ArrayLike", ARRAY.sub(r"ndarray[\1]", text))


def shorten_signature(
    app: Sphinx,
    what: str,
    name: str,
    item: object,
    options: object,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Do the same in a signature."""
    return signature and short(signature), returns and short(returns)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform and the resolver."""
    app.add_post_transform(LinkCode)
    app.connect("missing-reference", by_last_name)
    app.connect("autodoc-process-docstring", shorten_docstring, priority=900)
    app.connect("autodoc-process-signature", shorten_signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
