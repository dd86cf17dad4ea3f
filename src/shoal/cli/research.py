"""``shoal research``: the commands for researchers."""

import click

from shoal.cli.main import Commands

RESEARCH_COMMANDS = {
    "decompose": "Meet a demand for feedback by assignments of users to arms, and verify them.",
    "explore-beta": "Search for the graph that is hardest to decompose, the paper's open problem.",
}


@click.group(cls=Commands, table=RESEARCH_COMMANDS, name="research")
def command() -> None:
    """Decompose demands for feedback, and explore the paper's open problem."""
