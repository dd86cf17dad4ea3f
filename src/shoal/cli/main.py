"""The entry point: finds the command; an input that Shoal refuses is one line and exit code 2.

So is a file that the system refuses: a full disk, a folder that can't be written.

A command's module imports what it runs when it runs it, so that ``shoal --help`` is quick.
"""

import sys
from collections.abc import Mapping, Sequence
from errno import EPIPE
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from shoal import __version__
from shoal.cli.streams import allow_any_text, watch_interrupts
from shoal.errors import ShoalError, UnknownNameError

SECTIONS = {
    "Try it": ("demo", "simulate", "compare", "policies"),
    "Price it": ("price",),
    "Run it": ("serve", "campaign", "users", "token", "export"),
    "Operate it": ("doctor", "backup", "restore", "relearn"),
    "Research": ("sweep", "status", "report", "tune", "research"),
}
"""The commands in the order in which most people meet them."""
COMMANDS = tuple(name for names in SECTIONS.values() for name in names)
COMPLETION = """\b
Completion, by the line for your shell:
  bash  eval "$(_SHOAL_COMPLETE=bash_source shoal)"
  zsh   eval "$(_SHOAL_COMPLETE=zsh_source shoal)"
  fish  _SHOAL_COMPLETE=fish_source shoal | source
"""
MOVED = {name: f"shoal research {name}" for name in ("decompose", "explore-beta")}


class Commands(click.Group):
    """A group whose commands live in the modules of the same name.

    ``sections`` lists them under their headings; ``moved`` says what replaces a former one.
    """

    def __init__(
        self,
        *arguments: Any,
        sections: Mapping[str, Sequence[str]],
        moved: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._sections = sections
        self._names = [name for names in sections.values() for name in names]
        self._moved = moved or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in their order."""
        return self._names

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
        width = max(map(len, self._names))
        for heading, names in self._sections.items():
            texts = [self.get_command(ctx, name).help or "" for name in names]
            rows = [(f"{n:{width}}", t.split("\n\n")[0]) for n, t in zip(names, texts, strict=True)]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read the arguments; whatever is written from here on can be encoded."""
        allow_any_text()
        return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a refusal has exit code 2, and Ctrl-C has 130."""
        with watch_interrupts() as interrupts:
            try:
                return super().invoke(ctx)
            except (Stopped, click.exceptions.Exit):
                raise
            except KeyboardInterrupt:
                raise Stopped("Stopped.") from None
            except Exception as error:
                if interrupts.pressed:  # some libraries make another error of it
                    raise Stopped("Stopped.") from None
                if isinstance(error, ShoalError):
                    raise RefusedInput(str(error)) from error
                if isinstance(error, MemoryError):
                    raise RefusedInput(f"there is not enough memory: {error}.") from error
                if isinstance(error, OSError) and error.strerror and error.errno != EPIPE:
                    place = f"{error.filename}: " if error.filename else ""
                    raise RefusedInput(f"{place}{error.strerror}.") from error
                raise


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
    sections=SECTIONS,
    moved=MOVED,
    epilog=COMPLETION,
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
