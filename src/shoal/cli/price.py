"""``shoal price``: what each least group size costs, with a recommendation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from shoal.cli import console, options
from shoal.cli.choices import NameChoice
from shoal.cli.price_text import show, with_options
from shoal.errors import InvalidInputError, UnknownNameError
from shoal.extras import missing

if TYPE_CHECKING:
    from shoal.instances import Log

OPTIONS = {
    "at_least": "--at-least",
    "columns": "--columns",
    "horizon": "--rounds",
    "min_group_size": "--min-group-size",
    "min_user_rows": "--min-user-rows",
    "n_arms": "--arms",
    "n_runs": "--runs",
    "n_users": "--users",
    "round_length": "--round-length",
    "time_limit": "--time-limit",
}
"""The options whose parameters have other names in Python."""

OF_LOGS = ("columns", "scale", "min_user_rows", "drop_duplicates", "round_length")
"""The options that say how a log is read."""


@click.command(name="price")
@click.option("--users", "n_users", type=int, help="Users N, with --rate or --log.")
@click.option("--arms", "n_arms", type=int, help="Arms K, with --rate.")
@click.option(
    "--rate",
    type=float,
    help="Mean reward over users and arms, above 0 and at most 0.5: populations are drawn.",
)
@options.means
@click.option(
    "--log",
    "log_file",
    type=click.Path(dir_okay=False),
    help="A log of past rounds to estimate the population from: CSV or Parquet.",
)
@click.option(
    "--columns",
    help="The log's columns for user, arm, reward and, if it has one, time.  "
    "[default: user,arm,reward]",
)
@click.option(
    "--scale",
    type=NameChoice("scale"),
    help="How the log's rewards get into [0, 1]: percent divides by 100; range makes the least 0 "
    "and the largest 1; p99 divides by the 99th percentile and cuts at 0 and 1; positive is 1 for "
    "all above 0.",
)
@click.option("--min-user-rows", type=int, help="Leave out users with fewer rows in the log.")
@click.option("--drop-duplicates", is_flag=True, help="Leave out rows that repeat another whole.")
@click.option(
    "--round-length",
    help="What a round of a log with dates is: a number of m, h, d or w.  [default: 1d]",
)
@click.option("--rounds", "horizon", type=int, required=True, help="Rounds T to play.")
@click.option(
    "--min-group-size",
    "min_group_sizes",
    default="1,5,10,20,50",
    help="The least group sizes C to compare.",
    callback=lambda *read: [_integer(size) for size in options.read_names(*read) or ()],
)
@click.option(
    "--policy",
    type=NameChoice("policy"),
    default="shoal",
    help="The learner, by name or module:Class.",
)
@options.of_policy
@options.rewards
@click.option(
    "--turnover",
    default=0.0,
    help="Probability that a user's tastes change in a round; with a log that has time, the log's.",
)
@click.option(
    "--runs",
    "n_runs",
    type=int,
    help="Populations to play.  [default: 5, and more until the answer is stable]",
)
@click.option("--at-least", default=5, help="The smallest groups that may be recommended.")
@click.option("--time-limit", type=float, help="Seconds after which no more runs are added.")
@click.option(
    "--sample", type=int, help="Users to play of a larger population; by default 10,000 or more."
)
@options.seed
@options.engine
@options.out(
    "folder", "A new folder for the answer (JSON) and the figure (PNG, SVG).", figures=True
)
@options.as_json
def command(
    rate: float | None,
    means_file: str | None,
    log_file: str | None,
    policy: str,
    out: Path | None,
    as_json: bool,
    **experiment: Any,
) -> None:
    """Say what each least group size C costs, and recommend one.

    Give --users, --arms and --rate, and populations are drawn; or --means or --log for your own.
    """
    with console.loading():
        from shoal.experiments import price
        from shoal.experiments.comparison import new_folder

    _check_sources({"--rate": rate, "--means": means_file, "--log": log_file}, experiment)
    files = {"means_file": means_file, "log_file": log_file, "columns": experiment["columns"]}
    files |= {name: experiment[name] for name in OF_LOGS[1:] if experiment[name]}
    with _options_named():
        _check_numbers(experiment)
        source = _source(means_file, log_file, policy, experiment)
        _leave_out_sizes(source, experiment)
    with console.progress(f"pricing with {policy}") as progress, _options_named():
        answer = price(rate=rate, policy=policy, progress=progress, **source, **experiment)
    answer = replace(answer, config={**answer.config, **files})
    content = answer.to_dict()
    content["recommendation"] = with_options(content["recommendation"])
    content |= {name: list(map(with_options, content[name])) for name in ("doubts", "notes")}
    text = json.dumps(content)
    if as_json:
        click.echo(text)
    else:
        show(answer)
    if out:
        with new_folder(out) as folder, console.waiting("writing"):
            (folder / "price.json").write_text(text + "\n", encoding="utf-8")
            if not missing("figures"):
                from shoal.figures import price_figure, save

                save(price_figure(content), folder / "price")
        if not as_json:
            contents = "Answer" if missing("figures") else "Answer and figure"
            click.echo(f"{contents}: {out}")


def _check_sources(sources: dict[str, Any], experiment: dict[str, Any]) -> None:
    """Refuse several descriptions of people, and options that the one does not take."""
    present = [name for name, value in sources.items() if value is not None]
    if len(present) != 1:
        got = " and ".join(present) or "none"
        raise InvalidInputError(f"give one of --rate, --means and --log; got {got}.")
    rate, n_arms = sources["--rate"], experiment["n_arms"]
    if rate is not None and None in (experiment["n_users"], n_arms):
        raise InvalidInputError("--rate needs --users and --arms beside it; got only some.")
    if rate is not None and 1 < rate <= 50:
        raise InvalidInputError(
            f"--rate must be above 0 and at most 0.5; got {rate}: {rate:g} % is {rate / 100:g}."
        )
    if sources["--log"] is not None and n_arms is not None:
        raise InvalidInputError(f"--arms must be left out beside --log; got {n_arms}.")


def _check_numbers(experiment: dict[str, Any]) -> None:
    """Refuse numbers that can't be right before a log is read."""
    from shoal.model.numbers import whole_number

    whole_number("horizon", experiment["horizon"])
    if experiment["n_runs"] is not None:
        whole_number("n_runs", experiment["n_runs"], minimum=2)
    for size in experiment["min_group_sizes"]:
        whole_number("min_group_size", size)


def _leave_out_sizes(source: dict[str, Any], experiment: dict[str, Any]) -> None:
    """Leave out default sizes that are larger than the population."""
    context = click.get_current_context()
    if context.get_parameter_source("min_group_sizes") is not ParameterSource.DEFAULT:
        return
    n_users = experiment["n_users"]
    if n_users is None:
        n_users = len(source["means"]) if "means" in source else source["population"].n_users
    sizes = experiment["min_group_sizes"]
    experiment["min_group_sizes"] = [size for size in sizes if size <= n_users]
    if n_users < max(sizes):
        left_out = ", ".join(str(size) for size in sizes if size > n_users)
        click.echo(f"There are {n_users:,} users: groups of {left_out} are left out.", err=True)


@contextmanager
def _options_named() -> Iterator[None]:
    """Let a refusal name the option where the library names its own parameter."""
    try:
        yield
    except UnknownNameError:
        raise
    except InvalidInputError as error:
        parameter, _, rule = with_options(str(error)).partition(" ")
        raise InvalidInputError(f"{OPTIONS.get(parameter, parameter)} {rule}") from error


def _source(
    means_file: str | None, log_file: str | None, policy: str, experiment: dict[str, Any]
) -> dict[str, Any]:
    """Return the caller's means or population; take the options of a log out of the others."""
    from shoal.instances import load_means

    present = {name: experiment.pop(name) for name in OF_LOGS}
    chosen = {
        name: value for name, value in present.items() if value is not None and value is not False
    }
    if not log_file:
        for name, value in chosen.items():
            option = f"--{name.replace('_', '-')}"
            raise InvalidInputError(f"{option} needs --log beside it; got {value!r} alone.")
        return {"means": load_means(means_file)} if means_file else {}
    columns = options.split_names(chosen.pop("columns", "user,arm,reward"))
    if len(columns) not in (3, 4):
        quotes = " A name with a comma needs double quotes." if len(columns) > 4 else ""
        raise InvalidInputError(
            "--columns must name user, arm and reward, and may name time; got "
            f"{','.join(columns)!r}.{quotes}"
        )
    chosen |= dict(zip(("user", "arm", "reward", "time"), columns, strict=False))
    log = _read(log_file, chosen | {"seed": experiment["seed"]})
    profile = log.profile
    for line in (
        f"{log_file}: {profile.summary}", profile.arm_list, str(log.report), *profile.warnings
    ):  # fmt: skip
        click.echo(with_options(line), err=True)
    if len(log.arms) < 2:
        raise InvalidInputError(
            f"arm column {columns[1]!r} must name at least 2 arms, for there to be a choice; got "
            f"{log.arms[0]!r} alone."
        )
    _check_roles(log, experiment)
    with console.waiting("estimating how users differ"):
        source = {"population": log.population}
    if click.get_current_context().get_parameter_source("rewards") is ParameterSource.DEFAULT:
        del experiment["rewards"]  # as in the log
        click.echo(f"Rewards are played as {log.rewards}; --rewards changes that.", err=True)
    if log.visits is not None:
        _set_conditions(log, policy, experiment)
    return source


def _read(log_file: str, arguments: dict[str, Any]) -> Log:
    """Read the log; a column that it does not have is refused by the name of the option."""
    from shoal.instances import from_log
    from shoal.instances.rows import UnknownColumnError

    try:
        with console.waiting("reading the log"):
            return from_log(log_file, **arguments)
    except UnknownColumnError as error:
        raise InvalidInputError(
            f"--columns must name the log's columns for user, arm and reward, in this order; it "
            f"has {options.join_names(error.columns)}; got {error.name!r} for the {error.role}."
            f"{error.hint}"
        ) from error


def _check_roles(log: Log, experiment: dict[str, Any]) -> None:
    """Ask whether user and arm are exchanged where arms are more and no group has enough users."""
    n_users, n_arms = experiment["n_users"] or len(log.users), len(log.arms)
    candidates = [size for size in experiment["min_group_sizes"] if size >= experiment["at_least"]]
    if candidates and n_arms > n_users < min(candidates):
        raise InvalidInputError(
            f"--min-group-size must be at most {n_users}, the number of users; got "
            f"{', '.join(map(str, candidates))}. There are more arms ({n_arms}) than users: are "
            "user and arm exchanged in --columns?"
        )


def _set_conditions(log: Log, policy: str, experiment: dict[str, Any]) -> None:
    """Price with the log's participation and change of tastes, where the caller says nothing."""
    from shoal.policies import find_policy

    visits = log.visits
    assert visits is not None
    click.echo(str(visits), err=True)
    if log.trend:
        click.echo(f"A common trend was taken out: ± {log.trend:.0%} over the rows.", err=True)
    conditions = {
        "participation": visits.participation,
        "turnover": visits.turnover(log.population.covariance),
    }
    source = click.get_current_context().get_parameter_source
    experiment |= {
        name: value
        for name, value in conditions.items()
        if value is not None and source(name) is ParameterSource.DEFAULT
    }
    if visits.moves and "drift" in find_policy(policy).options():
        experiment["options"] = {"drift": visits.learner_drift} | experiment["options"]
    click.echo(
        f"Priced with a participation of {experiment['participation']:.3g} and a turnover of "
        f"{experiment['turnover']:.2g} a round; --participation and --turnover change that.",
        err=True,
    )


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInputError(f"min_group_size must be whole numbers; got {text!r}.") from None
