"""The entry point: finds the command; an input that Shoal refuses is one line and exit code 2.

A command's module imports what it runs when it runs it, so that ``shoal --help`` is quick.
"""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from shoal import __version__
from shoal.errors import ShoalError, UnknownNameError

COMMANDS = (
    "backup", "campaign", "compare", "demo", "doctor", "export", "policies", "price", "relearn",
    "report", "research", "restore", "serve", "simulate", "status", "sweep", "token", "tune",
    "users",
)  # fmt: skip
MOVED = {name: f"shoal research {name}" for name in ("decompose", "explore-beta")}


class Commands(click.Group):
    """A group whose commands live in the modules of the same name.

    ``names`` lists them; ``moved`` says what replaces a former one.
    """

    def __init__(
        self,
        *arguments: Any,
        names: Sequence[str],
        moved: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._names = names
        self._moved = moved or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in their order."""
        return list(self._names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Load the module that holds the command."""
        if cmd_name in self._moved:
            raise RefusedInput(f"shoal {cmd_name} is now: {self._moved[cmd_name]}")
        if cmd_name not in self._names:
            raise click.UsageError(str(UnknownNameError("command", cmd_name, self._names)))
        module = import_module(f"shoal.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first paragraph of each command's help, which click would cut short."""
        texts = {name: self.get_command(ctx, name).help or "" for name in self._names}
        with formatter.section("Commands"):
            formatter.write_dl([(name, text.split("\n\n")[0]) for name, text in texts.items()])

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
    names=COMMANDS,
    moved=MOVED,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, prog_name="shoal")
def main() -> None:
    """Personalise for everyone while observing no one.

    Shoal learns which arm suits each user when it may only ever see totals over groups of users.
    """
    if str(Path.cwd()) not in sys.path:
        sys.path.append(
            str(Path.cwd())
        )  # a policy's module:Class may stand here; others come first
