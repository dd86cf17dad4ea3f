"""The source keeps to the rules of CONTRIBUTING.md: plain words, one meaning per name, size."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.shape import MAX_LINES, MAX_PARAMETERS, array_types, functions

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
CODE = [path for path in SOURCES if "migrations" not in path.parts]  # what was stored stays
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
MAX_FILE_LINES = 400

# Words that a reader would have to look up, or that say less than the usual one.
BANNED = re.compile(
    r"\b(reckon\w*|anew|foretell\w*|foretold|hearken\w*|betimes|lived? with|comes to be|dwell\w*|"
    r"heed\w*|behold\w*|thereof|hence|thus|whence|amongst|sought|misfit\w*)\b",
    re.IGNORECASE,
)
# Participles and the like do not name a thing: best_group, arm_mask, message do.
NOT_NOUNS = {
    "found",
    "given",
    "told",
    "said",
    "seen",
    "own",
    "wanted",
    "meant",
    "kept",
    "each",
    "wants",
    "asked",
    "heard",
    "least",
    "most",
}
# What the campaign's page reads by these names.
IN_JSON = {"heard", "least"}
# Module-level names that are the same on purpose: the idiom of a framework or of the language.
IDIOMS = {"T", "Task", "Result"}  # type variables
SAME = {"Noise"}  # a message, and the strict model that reads it in a campaign's definition
# The front doors of `shoal price` and of logs; Algorithm 1 with all its options.
WIDE = {"price", "__init__"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [*SOURCES, *PAGES], ids=name_of)
def test_words_are_plain(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    banned = [
        f"{i}: {match[0]}" for i, line in enumerate(lines, 1) for match in BANNED.finditer(line)
    ]
    assert not banned


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_variables_and_arguments_name_things(path: Path) -> None:
    banned = NOT_NOUNS - (IN_JSON if path.name == "progress.py" else set())
    assert not [f"{line}: {name}" for line, name in variables(path) if name in banned]


def variables(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def test_a_public_class_or_constant_has_one_definition() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in CODE:
        for name in public_names(path):
            homes[name].append(name_of(path))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def public_names(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names: list[str] = []
        if isinstance(node, ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        for name in names:
            if name[0].isupper() and name not in IDIOMS | SAME:
                yield name


def test_array_types_are_defined_in_one_place() -> None:
    elsewhere = {name_of(path): found for path in SOURCES if (found := array_types(path))}
    assert elsewhere.keys() == {"src/shoal/arrays.py"}


def test_functions_are_short_and_take_few_arguments() -> None:
    every = [function for path in CODE for function in functions(path)]
    assert not [function for function in every if function.lines > MAX_LINES]
    wide = {f.place.split()[-1] for f in every if f.parameters > MAX_PARAMETERS}
    assert wide == WIDE


def test_files_are_short() -> None:
    assert not [
        name_of(p) for p in SOURCES if len(p.read_text("utf-8").splitlines()) > MAX_FILE_LINES
    ]
