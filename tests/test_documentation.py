"""The documentation is true: examples run, links lead somewhere, nothing is left out."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import click
import pytest
from tests.service.api.test_roles import PUBLIC, WHO_MAY
from tests.support.live import learning, serve
from tests.support.pages import BLOCK, ROOT, blocks, commands, has_examples, run, tidy
from tests.support.service import KEY, users
from tests.support.stores import Stores

import shoal
from shoal.cli.main import Commands, main
from shoal.decompositions import METHODS
from shoal.environments import REWARDS
from shoal.instances import FAMILIES, INSTANCES
from shoal.policies import POLICIES
from shoal.policies.paper.grid import GRIDS
from shoal.service.aggregator import Aggregator
from shoal.service.application import create_app
from shoal.service.campaign import Campaign
from shoal.service.problems import REASONS
from shoal.service.settings import AggregatorSettings, LearnerSettings
from shoal.service.store import Database

DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *DOCS]

LINK = re.compile(r"!?\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")


def listed(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield the full name of each command, those in modules of their own in a group too."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, Commands):
            yield from listed(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


COMMANDS = list(listed(main))


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def section(text: str, heading: str) -> str:
    """Return what stands under a second-level heading."""
    match = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert match, f"there is no section {heading!r}"
    return match[1]


@contextmanager
def running_service(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve on loopback from ``shoal-data``, with address and tokens in the environment."""
    stores = Stores("sqlite:///shoal-data/aggregator.db", "sqlite:///shoal-data/learner.db")
    with serve(stores) as live, learning(live):
        key = Path("shoal-data/aggregator.key")
        key.touch(mode=0o600)
        key.write_bytes(KEY)
        monkeypatch.setenv("SHOAL_URL", live.url)
        for role, token in live.tokens.items():
            monkeypatch.setenv(f"SHOAL_{role.upper()}_TOKEN", token)
        monkeypatch.setenv("SHOAL_TOKEN", "")  # a page may set it
        yield


def play_one_round() -> None:
    """Leave a campaign with a release, for pages that look at one."""
    from shoal.client import Client

    url = os.environ["SHOAL_URL"]
    with (
        Client(url, os.environ["SHOAL_OPERATOR_TOKEN"]) as operator,
        Client(url, os.environ["SHOAL_APP_TOKEN"]) as app,
        Client(url, os.environ["SHOAL_ANALYST_TOKEN"]) as analyst,
    ):
        operator.create_campaign(
            "front-page", arms=["a", "b"], min_group_size=5, seats=30, horizon=1000
        )
        operator.enrol("front-page", users(30))
        operator.open_round("front-page", 1)
        app.report("front-page", 1, dict.fromkeys(users(30), 1.0))
        operator.close_round("front-page", 1)
        assert analyst.release("front-page", 1).totals


@pytest.mark.parametrize("page", [page for page in PAGES if has_examples(page)], ids=page_id)
def test_examples_run_in_the_order_of_the_page_and_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # One process: starting a pool would take longer than the examples.
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0}, raising=False)
    text = page.read_text(encoding="utf-8")
    with running_service(monkeypatch) if "SHOAL_URL" in text else nullcontext():
        if "$ shoal export" in text:
            play_one_round()
        for block, printed in run(page):
            assert tidy(block.body) == tidy(printed), f"{page_id(page)}: try make outputs"


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
        for option in command.get_params(click.Context(command, **main.context_settings))
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
        " ".join(arguments[: len(name.split())])
        for block in blocks(section(text, f"shoal {name}"))
        if block.language == "console"
        for arguments in commands(block.body)
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
        "shoal.decompositions",
        "shoal.policies",
        "shoal.experiments",
        "shoal.experiments.sweep",
        "shoal.engines",
        "shoal.figures",
        "shoal.client",
    ],
)
def test_every_public_name_is_in_the_python_reference(module: str) -> None:
    text = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    missing = [n for n in import_module(module).__all__ if not re.search(rf"\b{n}\b", text)]
    assert not missing


def test_the_readmes_headline_table_is_that_of_the_papers_experiment() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- headline -->\n(\| .*?)\n<!-- /headline -->", text, re.S)
    assert found
    assert f"\n{found[1]}\n" in (ROOT / "docs/benchmarks/paper.md").read_text(encoding="utf-8")


def test_the_readmes_measured_figures_are_those_of_the_page_that_they_link_to() -> None:
    links = LINK.findall((ROOT / "README.md").read_text("utf-8"))
    figures = [(text, page) for text, page in links if "±" in text]
    assert figures
    for text, page in figures:
        measured = (ROOT / page).read_text("utf-8")
        assert all(f"| {figure} |" in measured for figure in text.split(" and "))


def test_the_version_to_cite_is_this_one() -> None:
    assert f"\nversion: {shoal.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"{{{shoal.__version__}}}" in (ROOT / "docs/cite.md").read_text("utf-8")


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of a section's tables, without the marks of code."""
    text = section((ROOT / "docs" / "service" / page).read_text(encoding="utf-8"), heading)
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip().replace("`", "") for cell in line.split("|")[1:-1]] for line in lines]


def test_every_route_is_documented_with_its_roles(tmp_path: Path) -> None:
    documented = {(row[0], row[1]): row[2] for row in rows("http.md", "Routes")[2:]}
    aggregator = Aggregator(Database(f"sqlite:///{tmp_path}/aggregator.db"), key=KEY)
    paths = create_app(aggregator).openapi()["paths"]
    aggregator.close()
    assert documented.keys() == {(m.upper(), path) for path, item in paths.items() for m in item}
    for route, roles in documented.items():
        assert roles == "anyone" if route in PUBLIC else set(roles.split(", ")) == WHO_MAY[route]


def test_every_problem_is_documented_with_its_status() -> None:
    documented = {row[0]: row[1] for row in rows("http.md", "Problems")}
    actual = {reason.name: str(reason.status) for reason in REASONS.values()}
    assert documented == actual | {"name": "status", "---": "---"}


def test_every_field_of_a_campaign_is_documented_with_its_default() -> None:
    documented = {row[0]: row[1] for row in rows("http.md", "A campaign")[2:]}
    assert documented.keys() == Campaign.model_fields.keys()
    for name, field in Campaign.model_fields.items():
        default = "" if field.is_required() else field.get_default(call_default_factory=True)
        assert documented[name] == ("" if default == "" else json.dumps(default)), name


def test_every_setting_is_documented_with_its_default() -> None:
    documented = {row[0]: row[1] for row in rows("operations.md", "Settings")[2:]}
    actual = {"SHOAL_DATA": "shoal-data"}
    for part, kind in (("AGGREGATOR", AggregatorSettings), ("LEARNER", LearnerSettings)):
        for field in fields(kind):
            actual[f"SHOAL_{part}_{field.name.upper()}"] = str(field.default)
    assert documented.keys() == actual.keys()
    assert all(documented[name] == default for name, default in actual.items() if default)


def test_every_threat_is_documented_with_code_and_tests_that_exist() -> None:
    tests = "\n".join(file.read_text() for file in (ROOT / "tests/service").rglob("test_*.py"))
    threats = rows("privacy.md", "Threat by threat")[2:]
    assert [row[0] for row in threats] == [str(number) for number in range(1, 33)]
    for number, _, _, where, shown in threats:
        files = [name for name in where.split(", ") if name]
        package = ROOT / "src/shoal"
        for name in files:  # in the service, or in what it shares with simulation
            assert any((at / name).is_file() for at in (package / "service", package)), number
        names = re.findall(r"test_\w+", shown)
        assert names, number
        for name in names:
            assert f"def {name}(" in tests, name
            assert name.startswith(f"test_threat_{int(number):02}_")
