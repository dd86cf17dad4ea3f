"""The entry point: finds the command; an input that Shoal refuses is one line and exit code 2.

A command's module is loaded when it is needed, so that ``shoal --help`` is quick.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from shoal import __version__
from shoal.errors import ShoalError, UnknownNameError

COMMANDS = {
    "backup": "Copy a store to a file while the service runs.",
    "compare": "Run several policies on the same instances; by default the paper's experiment.",
    "demo": "Start the service and watch it learn from a population with tastes.",
    "doctor": "Check the service's settings, stores and clocks, and every stored plan and release.",
    "export": "Write a campaign's released totals as Parquet.",
    "policies": "Show the policies, what each needs and what it guarantees.",
    "price": "Say what each least group size costs, and recommend one.",
    "report": "Write a sweep or a comparison as one HTML page that can be mailed.",
    "research": "Decompose demands for feedback; explore the paper's open problem.",
    "restore": "Fill an empty store from a backup.",
    "serve": "Run the service: both roles, or one of them.",
    "simulate": "Run one policy and show its regret over time.",
    "status": "Show how far a sweep is: done, running, failed, time left.",
    "sweep": "Play a grid of simulations that continues where it was stopped.",
    "tune": "Choose hyperparameters on separate validation instances.",
}
MOVED = {name: f"shoal research {name}" for name in ("decompose", "explore-beta")}


class Commands(click.Group):
    """A group whose commands live in the modules of the same name.

    ``table`` describes each command; ``moved`` says what replaces a former one.
    """

    def __init__(
        self,
        *arguments: Any,
        table: Mapping[str, str],
        moved: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._table = table
        self._moved = moved or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the module that holds the command."""
        if cmd_name in self._moved:
            raise RefusedInput(f"shoal {cmd_name} is now: {self._moved[cmd_name]}")
        if cmd_name not in self._table:
            raise click.UsageError(str(UnknownNameError("command", cmd_name, self._table)))
        module = import_module(f"shoal.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table without loading any command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._table.items()))

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a refusal has exit code 2, and Ctrl-C has 130."""
        try:
            return super().invoke(ctx)
        except ShoalError as error:
            raise RefusedInput(str(error)) from error
        except KeyboardInterrupt:
            raise Stopped("Stopped.") from None
        except MemoryError as error:
            raise RefusedInput(f"there is not enough memory for this: {error}.") from error


class RefusedInput(click.ClickException):
    """An input that Shoal refuses: a usage error."""

    exit_code = 2


class Stopped(click.ClickException):
    """Ctrl-C: not an error, but not complete either."""

    exit_code = 130

    def show(self, file: object = None) -> None:
        """Print how to continue, where the command knows."""
        click.echo(self.format_message(), err=True)


@click.group(
    cls=Commands,
    table=COMMANDS,
    moved=MOVED,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, prog_name="shoal")
def main() -> None:
    """Personalise for everyone while observing no one.

    Shoal learns which arm suits each user when it may only ever see totals over groups of users.
    """
