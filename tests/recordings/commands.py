"""Recordings of the command line: every command's options, and what the repeatable ones print.

``demo`` and ``serve`` run until they are stopped, and are not played. Texts for people (help,
tables, the page of ``report``) are not recorded: they may be worded better.
"""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
import polars as pl
from click.testing import CliRunner
from tests.recordings.documents import short_hash, tidy
from tests.recordings.pinned import Recording
from tests.recordings.surface import COMMANDS, main

SMALL = "--users 12 --arms 3 --min-group-size 2 --horizon 300"
ONE = "--workers 1"
GRID = """
policies = ["random", "explore-then-commit", "shoal"]
instances = ["uniform", "linear"]
users = 12
arms = 3
participation = [1.0, 0.8]
min_group_size = 2
horizon = 50
runs = 2

[options.explore-then-commit]
exploration = [0.2, 0.5]
"""
FAILING = """
policies = ["elimination-lp", "random"]
users = 4
arms = 2
horizon = 20
runs = 1
"""
ACTIVE = [[0, 1], [0, 1], [1, 2], [0, 1, 2], [2], [2], [0], [1], [0, 2], [0, 1, 2]]
METHODS = ("euler", "optimal", "lp", "blocks", "greedy", "random")
PRICE = f"price --rounds 40 --min-group-size 2,5 --runs 2 {ONE} --json"

# Played in this order, in one folder: some read what others wrote.
CALLS = [
    "policies --json",
    f"simulate {SMALL} --json",
    f"simulate elimination-greedy --untuned {SMALL} -o gamma=4 -o grid=geometric --seed 3 --json",
    f"simulate elimination-lp {SMALL} -o gamma=8 -o n_batches=4 -o approximation_ratio=2"
    " -o grid=minimax --participation 0.8 --json",
    f"simulate pooled-thompson {SMALL} --instance linear --rewards gaussian --json",
    "simulate ucb --means means.csv --min-group-size 2 --horizon 100 --json",
    "simulate shoal --instance clustered --users 600 --shards 2 --horizon 20 --workers 1 --json",
    f"compare --policies elimination-lp,pooled-elimination,shoal,ucb --runs 3 {SMALL} {ONE} --json"
    " --out compared",
    f"compare --policies explore-then-commit,elimination-greedy --untuned --runs 2 {SMALL} {ONE}"
    " -o explore-then-commit.exploration=0.2 --rewards bounded --participation 0.9 --json",
    f"compare --means means.csv --policies random,shoal --runs 2 --min-group-size 2 --horizon 60"
    f" {ONE} --json",
    f"tune --instances uniform --policies explore-then-commit,pooled-elimination --runs 2 {SMALL}"
    f" {ONE} --json --out tuned.json",
    f"{PRICE} --users 60 --arms 3 --rate 0.2 --out priced",
    f"{PRICE} --means means.csv --policy pooled-thompson",
    f"{PRICE} --log log.csv --columns who,what,clicked",
    f"sweep grid.toml --out swept {ONE} --json",
    f"sweep grid.toml --out swept {ONE} --json",
    "status swept --json",
    f"sweep failing.toml --out failed {ONE} --json",
    "status failed --json",
    *(f"decompose active.json --method {method} --min-crowd 2 --json" for method in METHODS),
    "decompose pairs.csv --demand 7 --min-crowd 2 --json --out decomposed",
    "explore-beta --arms 2 --seconds 0.5 --json --out beta.json",
    "doctor --data nowhere --json",
    # What is refused: exit code 2.
    "simulate elimination-pl",
    "simulate random --horizon 0",
    "compare --workers 0",
    f"simulate random {SMALL} --engine ray",
    "price --rounds 40",
    "status .",
]


RESEARCH = ("decompose", "explore-beta")
"""Recorded under the names of version 0.1; now they are commands of ``shoal research``."""


def record() -> Recording:
    """Return the options of every command and the answer to every call."""
    names = [*(name for name in COMMANDS if name != "research"), *RESEARCH]
    found: Recording = {f"options of {name}": _options(name) for name in names}
    with TemporaryDirectory() as folder, chdir(folder):
        _write_inputs()
        for call in CALLS:
            key = f"shoal {call}"
            found[f"{key} (again)" if key in found else key] = run_command(call)
        files = sorted(file for file in Path().rglob("*") if file.is_file())
        found["files"] = [str(file) for file in files]
        for file in files:
            if file.suffix == ".parquet" or (file.suffix in (".csv", ".json") and file.parent.name):
                found[f"file {file}"] = content(file)
    return found


def _options(name: str) -> dict[str, Any]:
    command: click.Command | None = main
    for word in _words(name):
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    return {
        "options": {
            " ".join(sorted(parameter.opts)): {
                "default": _plain(parameter.default),
                "flag": getattr(parameter, "is_flag", False),
                "many": getattr(parameter, "multiple", False),
                "required": parameter.required,
                "type": parameter.type.name,
            }
            for parameter in command.params
        },
        "commands": sorted(command.commands) if isinstance(command, click.Group) else [],
    }


def _words(call: str) -> list[str]:
    """Return the arguments of a call, with the group that its command has moved to."""
    words = call.split()
    return ["research", *words] if words[0] in RESEARCH else words


def _plain(default: object) -> object:
    """Return a default as JSON can hold it; click has a mark of its own for none."""
    return default if isinstance(default, str | int | float) else None


def _write_inputs() -> None:
    rng = np.random.default_rng(0)
    np.savetxt("means.csv", rng.random((30, 3)).round(3), delimiter=",", fmt="%.3f")
    rows = [f"u{user},a{arm},{int(rng.random() < 0.4)}" for user in range(30) for arm in (1, 2, 3)]
    Path("log.csv").write_text("\n".join(["who,what,clicked", *rows, "u1,a1,often"]) + "\n")
    Path("grid.toml").write_text(GRID)
    Path("failing.toml").write_text(FAILING)
    Path("active.json").write_text(json.dumps({"active": ACTIVE, "demand": 12}))
    pairs = [f"{user},{arm}" for user, arms in enumerate(ACTIVE) for arm in arms]
    Path("pairs.csv").write_text("\n".join(["user,arm", *pairs]) + "\n")


def run_command(call: str, **environment: str) -> dict[str, Any]:
    """Return a command's exit code and the JSON that it prints, None where it prints words."""
    alone = {"SHOAL_LEARNER_AGGREGATOR": "http://127.0.0.1:9"}  # where nothing answers
    done = CliRunner().invoke(main, _words(call), env=alone | environment)
    try:
        printed = tidy(json.loads(done.stdout))
    except json.JSONDecodeError:
        printed = None
    return {"exit": done.exit_code, "printed": printed}


def content(file: Path) -> Any:
    """Return what a file of results holds."""
    if file.suffix == ".json":
        return tidy(json.loads(file.read_text()))
    if file.suffix == ".parquet":
        frame = pl.read_parquet(file)
        kept = frame.drop("seconds", strict=False)
        columns = ", ".join(f"{name} {kind}" for name, kind in frame.schema.items())
        return {"columns": columns, "rows": short_hash(repr(kept.rows()).encode())}
    return pl.read_csv(file).drop("seconds", strict=False).write_csv().splitlines()
