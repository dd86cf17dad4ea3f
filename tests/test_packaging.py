"""Every package that is imported is declared where it is needed."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "shoal"

# The extras that a part of the source may need, by the start of its path; all may use the rest.
EXTRAS = {
    "cli": ["service"],
    "figures": ["figures"],
    "cli/browser.py": ["dev"],  # the picture of a demo, where there is a browser
    "client": ["service"],
    "engines": ["cluster"],
    "experiments/audience.py": ["service"],
    "experiments/comparison.py": ["figures"],  # a chart of its own, where it is asked for
    "experiments/price/costs.py": ["figures"],
    "experiments/record.py": ["figures"],
    "model/plan.py": ["figures"],
    "service": ["service", "postgres", "dp"],
    "wire.py": ["service"],
}
PEERS = {"mabwiser", "river", "smpybandits"}  # have an interpreter of their own


def normalised(requirement: str) -> str:
    """Return a requirement's name as PyPI spells it."""
    name = re.match(r"[\w.-]+", requirement)
    assert name
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def declared(project: Path, extras: Iterable[str] = ()) -> set[str]:
    """Return the distributions that a project and these of its extras require."""
    table = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    requirements, ahead = list(table["dependencies"]), list(extras)
    while ahead:
        names = table["optional-dependencies"][ahead.pop()]
        requirements += names
        for inner in re.findall(r"^shoal\[(.*)\]$", "\n".join(names), re.M):
            ahead += inner.split(",")
    return {normalised(requirement) for requirement in requirements}


def imported(source: str) -> set[str]:
    """Return the top-level packages that a module imports, without Python's and the project's."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module or "")
    tops = {name.partition(".")[0] for name in names}
    return tops - sys.stdlib_module_names - {"shoal", "tests", "benchmarks"}


@cache
def homes() -> dict[str, set[str]]:
    """Return the distributions that bring each package."""
    return {
        name: {normalised(item) for item in items}
        for name, items in packages_distributions().items()
    }


def undeclared(source: str, allowed: set[str]) -> set[str]:
    """Return the packages that a module imports and that none of ``allowed`` brings."""
    return {
        name for name in imported(source) if not homes().get(name, {normalised(name)}) & allowed
    }


def check(files: Iterable[Path], allowed: set[str]) -> None:
    missing = {
        str(file.relative_to(ROOT)): names
        for file in files
        if (names := undeclared(file.read_text(encoding="utf-8"), allowed))
    }
    assert not missing


def test_every_import_of_the_source_is_declared_with_its_extra() -> None:
    for file in sorted(SOURCE.rglob("*.py")):
        path = file.relative_to(SOURCE).as_posix()
        extras = [e for start, names in EXTRAS.items() if path.startswith(start) for e in names]
        check([file], declared(ROOT, extras))


def test_every_import_of_the_client_is_declared_by_its_own_distribution() -> None:
    project = ROOT / "packaging" / "client"
    wheel = tomllib.loads((project / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    places = [(project / place).resolve() for place in wheel["targets"]["wheel"]["force-include"]]
    files = [f for place in places for f in ([place] if place.is_file() else place.rglob("*.py"))]
    modules = [file for file in files if file.suffix == ".py"]
    check(modules, declared(project))
    for module in modules:  # and nothing of Shoal is left out, but for what is loaded on demand
        for name in re.findall(r"^from (shoal[\w.]*) import", module.read_text(), re.M):
            parts = SOURCE.joinpath(*name.split(".")[1:])
            assert {parts.with_suffix(".py"), parts / "__init__.py"} & set(modules), name


@pytest.mark.parametrize("part", ["tests", "benchmarks", "examples"])
def test_every_import_of_the_rest_is_declared(part: str) -> None:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    files = list((ROOT / part).rglob("*.py"))
    beside = {normalised(file.stem) for file in files if part == "examples"}
    check(files, declared(ROOT, table["optional-dependencies"]) | PEERS | beside)


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("import os, shoal.model\nfrom . import near", set()),
        ("import httpx._config", set()),
        ("def f():\n    from anyio.to_thread import run_sync", {"anyio"}),
        ("import not_installed_anywhere", {"not_installed_anywhere"}),
    ],
)
def test_an_import_that_is_not_declared_is_found(source: str, missing: set[str]) -> None:
    assert undeclared(source, {"httpx"}) == missing


def test_no_page_installs_a_name_that_belongs_to_others_on_the_public_index() -> None:
    pages = [ROOT / "README.md"]
    pages += [page for folder in ("docs", "packaging") for page in (ROOT / folder).rglob("*.md")]
    lines = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    advised = [line for line in lines if line.startswith(("$", "|"))]
    assert any("pip install ./packaging/client" in line for line in advised)
    assert not [line for line in advised if re.search(r"pip install (-\S+ )*'?shoal", line)]


STAMPS = (".core-ready", ".demo-ready", ".kernels-ready", ".ready")


@pytest.mark.parametrize("stamp", STAMPS)
def test_make_installs_the_sources_again_where_a_copy_hides_them(
    stamp: str, tmp_path: Path
) -> None:
    for name in ("pyproject.toml", "constraints.txt", "Makefile"):
        shutil.copy(ROOT / name, tmp_path)
    packages = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages"
    (packages / "shoal").mkdir(parents=True)
    (tmp_path / ".venv" / "bin").mkdir()
    for name in ("bin/pip", *STAMPS):
        (tmp_path / ".venv" / name).touch()
    command = ["make", "--question", f".venv/{stamp}"]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
    (packages / "shoal" / "__init__.py").touch()
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 1
