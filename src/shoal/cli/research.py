"""``shoal research``: the commands for researchers."""

import click

from shoal.cli.main import Commands


@click.group(cls=Commands, sections={"Commands": ("decompose", "explore-beta")}, name="research")
def command() -> None:
    """Decompose demands for feedback, and explore the paper's open problem."""
