"""``shoal relearn``: learn a campaign again from its releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shoal.cli.serve import with_settings

if TYPE_CHECKING:
    from shoal.service.settings import Settings


@click.command(name="relearn")
@with_settings
@click.argument("campaign")
@click.option(
    "--forget-rounds",
    is_flag=True,
    help="Also forget how far the campaign is, where that is wrong. Not after a restore of the "
    "aggregator: nobody would remember its forgotten rounds.",
)
def command(settings: Settings, campaign: str, forget_rounds: bool) -> None:
    """Learn a campaign again from its releases, in place of a state that is damaged.

    The learner does it at once where it runs, else when it starts. It needs the learner's store
    alone.
    """
    from shoal.errors import InvalidInputError
    from shoal.service.learner.run import Records
    from shoal.service.store.database import opened
    from shoal.service.store.migrate import current, newest

    with opened(settings.database("learner"), "learner") as database:
        if current(database) != newest("learner"):
            raise InvalidInputError(
                "the learner's store must be there and of this release; start the learner first."
            )
        if not Records(database).ask_to_relearn(campaign, forget_rounds=forget_rounds):
            raise InvalidInputError(f"campaign must be one that the learner has; got {campaign!r}.")
    when = "at once where the learner runs, else when it starts"
    click.echo(f"{campaign} is learnt again from its releases: {when}.")
