"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from shoal.errors import InvalidInputError

Command = TypeVar("Command", bound=Callable[..., Any])


def problem_options(command: Command) -> Command:
    """Add the options that describe a problem."""
    for option in reversed(
        [
            click.option("--users", "n_users", default=50, show_default=True, help="Users N."),
            click.option("--arms", "n_arms", default=5, show_default=True, help="Arms K."),
            click.option(
                "--min-group-size",
                default=4,
                show_default=True,
                help="Least users C behind any total that is seen.",
            ),
            click.option("--horizon", default=100_000, show_default=True, help="Rounds T to play."),
            click.option("--seed", default=0, show_default=True, help="Same seed, same bytes."),
        ]
    ):
        command = option(command)
    return command


def play_options(command: Command) -> Command:
    """Add the options that say how rewards come about."""
    for option in reversed(
        [
            click.option(
                "--rewards",
                default="bernoulli",
                show_default=True,
                help="bernoulli, gaussian, bounded or deterministic.",
            ),
            click.option(
                "--participation",
                default=1.0,
                show_default=True,
                help="Probability that a user reports in a round.",
            ),
        ]
    ):
        command = option(command)
    return command


def engine_options(command: Command) -> Command:
    """Add the options that say where the work runs."""
    for option in reversed(
        [
            click.option(
                "--engine",
                default="local",
                show_default=True,
                help="local (processes on this machine) or ray (a cluster).",
            ),
            click.option(
                "--address",
                metavar="HOST:PORT",
                help="A Ray cluster to join; by default one is started here.",
            ),
            click.option(
                "--workers", "n_workers", type=int, help="Tasks at a time; by default one per core."
            ),
        ]
    ):
        command = option(command)
    return command


means_option = click.option(
    "--means",
    "means_file",
    type=click.Path(dir_okay=False),
    help="Your own matrix of expected rewards, a row per user: CSV, Parquet or .npy.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
policy_options = click.option(
    "--option",
    "-o",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of a policy, for example gamma=8 (compare: POLICY.gamma=8); repeatable.",
)


def names(text: str) -> list[str]:
    """Split a comma-separated list.

    >>> names("uniform, linear")
    ['uniform', 'linear']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def settings(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Read NAME=VALUE pairs; a value is JSON where it can be, a word otherwise.

    >>> settings(("gamma=8", "grid=minimax"))
    {'gamma': 8, 'grid': 'minimax'}
    """
    read: dict[str, Any] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise InvalidInputError(f"option must be NAME=VALUE; got {pair!r}.")
        try:
            read[name] = json.loads(value)
        except json.JSONDecodeError:
            read[name] = value
    return read
