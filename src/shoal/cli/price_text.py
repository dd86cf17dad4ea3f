"""The answer of ``shoal price`` for people: a table, notes and a recommendation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shoal.cli import console

if TYPE_CHECKING:
    from shoal.experiments import Cost, Price

ADVICE = {
    "n_runs=": "--runs ",
    "n_runs": "--runs",
    "drop_duplicates=True": "--drop-duplicates",
    "min_user_rows=": "--min-user-rows ",
    "at_least=": "--at-least ",
    "Choose a scale:": "Choose a --scale:",
}
"""What sentences for Python advise, and what that is here."""


def show(answer: Price) -> None:
    """Print the table, the notes and the recommendation."""
    from shoal.experiments.price.recommend import passes_in_words
    from shoal.model.plurals import count

    config, first = answer.config, answer.costs[0].min_group_size
    digits = 3 if abs(answer.best_arm) >= 0.02 else 5

    def against(cost: Cost) -> str:
        """Say what a size earns more or less than the first: a share where that has a meaning."""
        more, half = 0.0 - cost.loss.mean, cost.loss.half
        if cost is answer.costs[0]:
            return ""
        part, around = (
            answer.scale.part(value, answer.costs[0].reward.mean) for value in (more, half)
        )
        if part is not None and around is not None:
            decimals = 1 if answer.scale.changes else 0  # where 0 is far away, parts are small
            sign = "+" if round(part, 2 + decimals) else ""  # 0 has none
            return f"{part:{sign}z.{decimals}%} ± {around:.{decimals}%}"
        return f"{more:+z.{digits}f} ± {half:.{digits}f}"

    console.table(
        f"{config['policy']}: {count(config['n_users'], 'user')}, "
        f"{count(config['n_arms'], 'arm')}, {count(config['horizon'], 'round')}",
        ["C", "reward", "gain on best arm", "share of gap", f"against C={first}", "passes at",
         "all alike"],
        [
            (
                cost.min_group_size,
                f"{cost.reward.mean:.{digits}f}",
                answer.gain_in_words(cost),
                answer.share_in_words(cost),
                against(cost),
                passes_in_words(cost, never=f"not in {config['horizon']:,}"),
                "" if cost.homogeneous is None else f"{cost.homogeneous:.1%}",
            )
            for cost in answer.costs
        ],
    )  # fmt: skip
    if answer.population is not None:
        drawn = f"Every run played {config['sample']:,} users of a population that the log allows."
    elif config["rate"] is not None:
        drawn = (
            f"Populations of {config['sample']:,} users were drawn: six tastes each, users around "
            "them."
        )
    else:
        drawn = f"Every run played {config['sample']:,} of the {config['n_users']:,} users given."
    shown = any(cost.homogeneous is not None for cost in answer.costs)
    alike = " All alike: totals that reveal everyone's reward." if shown else ""
    for line in (
        f"Reward per user and round; intervals are 95 %. Best single arm for everyone: "
        f"{_band(answer, 'best_arm')}; full knowledge: {_band(answer, 'full_knowledge')}; a random "
        f"arm: {answer.mean_rate:.4f}.{alike}",
        f"{drawn} {count(config['n_runs'], 'run')}, the same for every C.",
        *map(with_options, answer.notes),
        f"Recommendation: {with_options(answer.recommendation)}",
    ):
        click.echo(line)


def with_options(sentence: str) -> str:
    """Return a sentence that advises options in place of arguments."""
    for argument, option in ADVICE.items():
        sentence = sentence.replace(argument, option)
    return sentence


def _band(answer: Price, name: str) -> str:
    band = answer.bands[name]
    return f"{band.mean:.4f} ({band.low:.4f} to {band.high:.4f})"
