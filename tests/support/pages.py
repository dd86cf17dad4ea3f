"""The pages of the documentation: their blocks, a run of them, and the output that they show.

``python -m tests.support.pages`` (``make outputs``) writes what a run prints into the pages.
"""

from __future__ import annotations

import os
import re
import shlex
import textwrap
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory
from typing import Any

from click.testing import CliRunner
from tests.support.arithmetic import pin_arithmetic

from shoal.cli.main import main

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
TIMES = re.compile(r"\d[\d,.]* (M|million|s|user-rounds/s)\b")
"""What differs from run to run: seconds, and user-rounds a second."""

COLUMNS = "80"
"""The width of a terminal whose lines fit the site."""

GALLERY = re.compile(r"\((images/gallery/[\w-]+\.png)\)")
"""Figures that a page's own examples draw, under the same name."""

PICTURE = re.compile(r"\(\.\./images/([\w-]+)\.png\)")
"""A tutorial's picture; one of ``shoal price`` has the name of the folder that a page gives it."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the line before its first, and its text."""

    language: str
    line: int
    body: str


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("body"))
        yield Block(match["language"], line, textwrap.dedent(match["body"]))


def commands(block: str) -> Iterator[list[str]]:
    """Yield the arguments of every ``$ shoal`` line; a backslash continues a line."""
    for line in os.path.expandvars(block.replace("\\\n", " ")).splitlines():
        if line.startswith("$ shoal "):
            yield shlex.split(line.removeprefix("$ shoal "), comments=True)


def has_examples(page: Path) -> bool:
    return any(
        block.language == "python" or (block.language == "console" and any(commands(block.body)))
        for block in blocks(page.read_text(encoding="utf-8"))
    )


def run(page: Path) -> Iterator[tuple[Block, str]]:
    """Run a page's examples in the current folder; yield each shown output beside the real one."""
    namespace: dict[str, Any] = {"__name__": "example"}
    printed = ""
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "python":
            code = compile("\n" * block.line + block.body, str(page), "exec", dont_inherit=True)
            with redirect_stdout(StringIO()) as stream:
                exec(code, namespace)
            printed = stream.getvalue()
        elif block.language == "console":
            printed = ""
            for arguments in commands(block.body):
                result = CliRunner().invoke(main, arguments, env={"COLUMNS": COLUMNS})
                assert result.exit_code == 0, f"shoal {shlex.join(arguments)}: {result.output}"
                printed += result.stdout
        elif block.language == "output":
            yield block, printed


def tidy(text: str) -> str:
    """Return the text without what differs from run to run, and without trailing spaces."""
    return "\n".join(line.rstrip() for line in TIMES.sub(r"… \1", text).strip().splitlines())


def write_outputs(page: Path) -> None:
    """Replace each output and figure that a page shows by that of a run, where they differ."""
    text = page.read_text(encoding="utf-8")
    with TemporaryDirectory() as folder, chdir(folder):
        outputs = iter([(block, text) for block, text in run(page)])
        for name in GALLERY.findall(text):
            copy(Path(name).name, page.parent / name)
        for name in PICTURE.findall(text):
            for drawn in Path(name).glob("price.[ps][nv]g"):
                copy(drawn, ROOT / "docs" / "images" / f"{name}{drawn.suffix}")

    def replaced(match: re.Match[str]) -> str:
        if match["language"] != "output":
            return match[0]
        block, text = next(outputs)
        if tidy(block.body) == tidy(text):
            return match[0]
        lines = "\n".join(line.rstrip() for line in text.strip().splitlines())
        return textwrap.indent(f"```output\n{lines}\n```", match["indent"])

    page.write_text(BLOCK.sub(replaced, text), encoding="utf-8")


if __name__ == "__main__":
    pin_arithmetic()
    for shown in sorted((ROOT / "docs").rglob("*.md")):
        content = shown.read_text(encoding="utf-8")
        if "```output" in content or GALLERY.search(content):
            write_outputs(shown)
