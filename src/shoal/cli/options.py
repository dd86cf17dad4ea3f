"""Options that several commands share, each declared once, and how their values are read.

An option has the name of the library's keyword that it sets, so that a command passes most of them
on as they are. Commands import this module whole: ``@options.problem``, ``@options.out(...)``.
"""

import csv
import json
import math
import shlex
from collections.abc import Callable, Sequence
from functools import wraps
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from shoal.cli import console
from shoal.cli.choices import NameChoice
from shoal.errors import InvalidInputError
from shoal.extras import missing
from shoal.outputs import check_new

Command = TypeVar("Command", bound=Callable[..., Any])


def split_names(text: str) -> list[str]:
    """Split a comma-separated list; as in a CSV file, quotes keep a name with a comma together.

    >>> split_names('uniform, linear'), split_names('"Amount, EUR",arm')
    (['uniform', 'linear'], ['Amount, EUR', 'arm'])
    """
    names = next(csv.reader([text], skipinitialspace=True), [])
    return [name.strip() for name in names if name.strip()]


def read_names(
    context: click.Context, option: click.Parameter, text: str | None
) -> list[str] | None:
    """Split an option's list; refuse one without any name, which is not the default."""
    if text is None:
        return None
    names = split_names(text)
    if not names:
        raise InvalidInputError(f"{option.opts[0]} must name at least one; got {text!r}.")
    return names


def join_names(names: Sequence[str]) -> str:
    r"""Join names into a list that ``split_names`` takes, with quotes for the shell if need be.

    >>> join_names(["user", "arm"]), join_names(["Amount, EUR", "arm"])
    ('user,arm', '\'"Amount, EUR",arm\'')
    """
    line = StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return shlex.quote(line.getvalue()) if '"' in line.getvalue() else line.getvalue()


def read_options(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Read NAME=VALUE pairs; a value is JSON or a number where it can be, a word otherwise.

    >>> read_options(("gamma=8", "epsilon=.3", "grid=minimax"))
    {'gamma': 8, 'epsilon': 0.3, 'grid': 'minimax'}
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise InvalidInputError(f"option must be NAME=VALUE; got {pair!r}.")
        try:
            options[name] = json.loads(value)
        except json.JSONDecodeError:
            options[name] = _number_or_word(value)
    return options


def _number_or_word(text: str) -> int | float | str:
    """Read a number as Python writes it, such as .3 or +1; anything else stays a word."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if math.isfinite(number):
            return number
    return text


def combined(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator that adds several options, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


seed = click.option("--seed", default=0, help="Same seed, same bytes.")
problem = combined(
    click.option("--users", "n_users", default=50, help="Users N."),
    click.option("--arms", "n_arms", default=5, help="Arms K."),
    click.option(
        "--min-group-size", default=4, help="Least users C behind any total that is seen."
    ),
    click.option("--horizon", default=100_000, help="Rounds T to play."),
    seed,
)
rewards = combined(
    click.option(
        "--rewards", type=NameChoice("rewards"), default="bernoulli", help="How rewards are drawn."
    ),
    click.option(
        "--participation", default=1.0, help="Probability that a user reports in a round."
    ),
)
means = click.option(
    "--means",
    "means_file",
    type=click.Path(dir_okay=False),
    help="Your own matrix of expected rewards, a row per user: CSV, Parquet or .npy.",
)
of_policy = combined(
    click.option(
        "--option",
        "-o",
        "options",
        multiple=True,
        metavar="NAME=VALUE",
        help="An option of a policy, for example gamma=8 (compare: POLICY.gamma=8); repeatable.",
        callback=lambda context, option, pairs: read_options(pairs),
    ),
    click.option(
        "--untuned",
        "tuned",
        is_flag=True,
        help="Use each policy's default options.",
        callback=lambda context, option, untuned: not untuned,
    ),
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")


def beside_means(values: dict[str, Any]) -> dict[str, Any]:
    """Leave out the instances and numbers of users and arms that nobody typed, beside means."""
    source = click.get_current_context().get_parameter_source
    of_means = ("n_users", "n_arms", "instance", "instances")
    return {
        name: value
        for name, value in values.items()
        if name not in of_means or source(name) is not ParameterSource.DEFAULT
    }


def experiment(policies: str, runs: str) -> Callable[[Command], Command]:
    """Return the options of policies that play drawn instances; says the default, and what runs."""
    return combined(
        click.option(
            "--instances",
            type=NameChoice("instance", many=True),
            default="uniform,linear",
            help="Classes of instances.",
            callback=read_names,
        ),
        click.option(
            "--policies",
            type=NameChoice("policy", many=True),
            help=f'Policies from "shoal policies", with commas; by default {policies}.',
            callback=read_names,
        ),
        problem,
        click.option("--runs", "n_runs", default=20, help=runs),
    )


def out(kind: str, description: str, *, figures: bool = False) -> Callable[[Command], Command]:
    """Return --out, a new "file" or "folder" that is refused before the work starts.

    Where its ``figures`` can't be drawn, that is said before the work starts too.
    """

    def check(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
        if path:
            check_new(path, kind)
            if figures and (message := missing("figures")):
                click.echo(f"No figure will be drawn: {message}", err=True)
        return path

    where = click.Path(path_type=Path, dir_okay=kind == "folder")
    return click.option("--out", type=where, help=description, callback=check)


def engine(command: Command) -> Command:
    """Add the options that say where the work runs; the command takes the ``engine``."""

    @click.option(
        "--engine",
        type=NameChoice("engine"),
        default="local",
        help="Processes on this machine, or a Ray cluster.",
    )
    @click.option(
        "--address",
        metavar="HOST:PORT",
        help="A Ray cluster to join; by default one is started here.",
    )
    @click.option(
        "--workers", "n_workers", type=int, help="Tasks at a time; by default one per core."
    )
    @wraps(command)
    def with_engine(
        *, engine: str, address: str | None, n_workers: int | None, **values: Any
    ) -> Any:
        with console.loading():
            from shoal.engines import make_engine

        return command(engine=make_engine(engine, n_workers=n_workers, address=address), **values)

    return with_engine  # type: ignore[return-value]
