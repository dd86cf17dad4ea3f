"""``shoal policies``: the table of policies."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from shoal.cli import console, options
from shoal.errors import ShoalError

if TYPE_CHECKING:
    from shoal.policies.registry import Entry


@click.command(name="policies")
@options.as_json
def command(as_json: bool) -> None:
    """Show the policies, what each needs and what it guarantees.

    Those that other installed packages bring come last (entry points "shoal.policies"), and among
    them those that can't be loaded, with the reason.

    N users, K arms, groups of at least C, T rounds; every arm is the best one of at least U users.
    Guarantees hide constants and logarithms.
    """
    with console.loading():
        from shoal.policies import POLICIES, find_policy
        from shoal.policies.own import installed

    entries, broken = dict(POLICIES), {}
    for name in installed():
        if name not in POLICIES:
            try:
                entries[name] = find_policy(name)
            except ShoalError as error:
                broken[name] = str(error)
    if as_json:
        fields = ("summary", "anonymous", "needs", "guarantee")
        table = {
            name: {field: getattr(entry, field) for field in fields} | {"options": entry.options()}
            for name, entry in entries.items()
        }
        click.echo(json.dumps(table | {name: {"error": why} for name, why in broken.items()}))
        return
    console.table(
        "Policies",
        ["name", "what it is, what it needs, its regret"],
        [
            *((name, _describe(entry)) for name, entry in entries.items()),
            *((name, f"can't be loaded: {why}") for name, why in broken.items()),
        ],
    )


def _describe(entry: Entry) -> str:
    if not entry.guarantee:  # a policy from elsewhere
        return entry.summary or "its class has no docstring"
    return f"{entry.summary}\nneeds {entry.needs}; regret: {entry.guarantee}"
