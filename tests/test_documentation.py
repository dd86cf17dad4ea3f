"""The documentation is true: examples run, links lead somewhere, nothing is left out."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import shoal
from shoal.cli.main import main
from shoal.decompositions import METHODS
from shoal.elimination import GRIDS
from shoal.environments import REWARDS
from shoal.instances import FAMILIES, INSTANCES
from shoal.policies import POLICIES

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *DOCS]

BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
COMMANDS = [
    (name, main.get_command(click.Context(main), name))
    for name in main.list_commands(click.Context(main))
]


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield the language, first line and text of each fenced block."""
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("body"))
        yield match["language"], line, textwrap.dedent(match["body"])


def commands(block: str) -> Iterator[list[str]]:
    """Yield the arguments of every ``$ shoal`` line; a backslash continues a line."""
    for line in block.replace("\\\n", " ").splitlines():
        if line.startswith("$ shoal "):
            yield shlex.split(line.removeprefix("$ shoal "), comments=True)


def section(text: str, heading: str) -> str:
    """Return what stands under a second-level heading."""
    match = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert match, f"there is no section {heading!r}"
    return match[1]


def has_examples(page: Path) -> bool:
    return any(
        language == "python" or (language == "console" and any(commands(body)))
        for language, _, body in blocks(page.read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize("page", [page for page in PAGES if has_examples(page)], ids=page_id)
def test_examples_run_in_the_order_of_the_page(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # One process: starting a pool would take longer than the examples.
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0}, raising=False)
    namespace: dict[str, Any] = {"__name__": "example"}
    for language, line, body in blocks(page.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile("\n" * line + body, str(page), "exec", dont_inherit=True), namespace)
        elif language == "console":
            for arguments in commands(body):
                result = CliRunner().invoke(main, arguments)
                assert result.exit_code == 0, f"shoal {shlex.join(arguments)}: {result.output}"


def test_readme_and_tutorials_have_examples() -> None:
    tutorials = (ROOT / "docs" / "tutorials").glob("*.md")
    assert all(has_examples(page) for page in (ROOT / "README.md", *tutorials))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_relative_links_and_images_lead_to_files(page: Path) -> None:
    prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for match in LINK.finditer(prose):
        target = match["target"].partition("#")[0]
        if target and "://" not in target:
            assert (page.parent / target).is_file(), f"{page_id(page)} links to {target}"


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_every_option_of_a_command_is_documented_with_its_default(
    name: str, command: click.Command
) -> None:
    text = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (`-.*?`) \| (.*?) \|", section(text, f"shoal {name}"), re.M))
    documented = {
        tuple(re.findall(r"`(.+?)`", options)): default for options, default in rows.items()
    }
    actual = {
        tuple(sorted(option.opts, key=len, reverse=True)): option
        for option in command.get_params(click.Context(command))
        if isinstance(option, click.Option)
    }
    assert documented.keys() == actual.keys()
    for opts, option in actual.items():
        if option.show_default:
            assert documented[opts] == f"`{option.default}`", opts


@pytest.mark.parametrize("name", [name for name, _ in COMMANDS])
def test_every_command_has_an_example(name: str) -> None:
    text = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")
    examples = [
        arguments[0]
        for language, _, body in blocks(section(text, f"shoal {name}"))
        if language == "console"
        for arguments in commands(body)
    ]
    assert name in examples


@pytest.mark.parametrize(
    "names",
    [shoal.__all__, POLICIES, INSTANCES, FAMILIES, REWARDS, METHODS, GRIDS],
    ids=["exports", "policies", "instances", "families", "rewards", "decompositions", "grids"],
)
def test_every_name_is_documented(names: list[str] | dict[str, object]) -> None:
    code = set(
        re.findall(r"[\w-]+", " ".join(re.findall(r"`[^`\n]+`", "\n".join(map(read, DOCS)))))
    )
    assert set(names) <= code


def read(page: Path) -> str:
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_is_in_the_table_with_its_options(name: str) -> None:
    text = (ROOT / "docs/reference/policies.md").read_text(encoding="utf-8")
    assert f"\n| `{name}` |" in text
    for option in POLICIES[name].options():
        assert f"\n| `{option}` |" in text, option


@pytest.mark.parametrize(
    "module",
    [
        "shoal",
        "shoal.model",
        "shoal.instances",
        "shoal.environments",
        "shoal.estimators",
        "shoal.elimination",
        "shoal.decompositions",
        "shoal.policies",
        "shoal.simulation",
        "shoal.engines",
        "shoal.figures",
    ],
)
def test_every_public_name_is_in_the_python_reference(module: str) -> None:
    text = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    missing = [n for n in import_module(module).__all__ if not re.search(rf"\b{n}\b", text)]
    assert not missing


def test_readme_keeps_the_place_of_the_headline_table() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"<!-- headline -->\n\| .*?<!-- /headline -->", text, re.S)
