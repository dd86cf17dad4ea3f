"""Output for people: progress on standard error, tables on standard output.

Rich is loaded with the first output, so that the modules of commands are quick to load.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import click

from shoal.cli.streams import raise_if_interrupted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, Task

COMPILING = "compiling, once"
LONGEST_WORD = 24
"""What is longer, such as a formula or a path, may be broken in a table; numbers are shorter."""

SILENT_SECONDS = 60.0
"""Between two lines that say how far it is, where there is no terminal for a bar."""


class Update(Protocol):
    """Moves a progress bar."""

    def __call__(self, finished: str, done: int, total: int, title: str | None = None) -> None:
        """Show what has just finished (or ""), the work done, the work in all, and a new title."""


def terminal(*, stderr: bool = False) -> Console:
    """Return what writes to a standard stream, names as they are: "run[a]" is no markup."""
    return _terminal(stderr, os.environ.get("COLUMNS"))


@cache
def _terminal(stderr: bool, columns: str | None) -> Console:
    """Return the one writer of a stream and a width: Rich reads the latter when it is made."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False)


def waiting(title: str) -> AbstractContextManager[object]:
    """Show that work of unknown length is in progress."""
    output = terminal(stderr=True)
    return output.status(title, spinner="line" if output.options.ascii_only else "dots")


def loading() -> AbstractContextManager[object]:
    """Show that modules are loaded, which takes seconds after an installation."""
    return waiting("loading")


@contextmanager
def progress(title: str) -> Iterator[Update]:
    """Show a bar; yields the function that moves it.

    While functions are compiled, which a release does once, that is its title; where there is no
    terminal, it is a line, and so is every minute how far it is.
    """
    from shoal.kernels import on_compile

    with _bar() as bar:
        task = bar.add_task(title, total=None)
        shown, compiling, announced, last_line = title, False, False, time.monotonic()

        def update(finished: str, done: int, total: int, title: str | None = None) -> None:
            nonlocal compiling, last_line, shown
            raise_if_interrupted()
            compiling, shown = False, title or shown
            bar.update(task, completed=done, total=total, description=shown)
            if finished:
                bar.console.print(f"done: {finished}", style="dim", highlight=False)
            if bar.disable and time.monotonic() - last_line > SILENT_SECONDS:
                last_line, state = time.monotonic(), bar.tasks[task]
                spent = times(state.elapsed or 0.0, state.time_remaining)
                click.echo(f"{shown}: {state.percentage:.0f} %, {spent}", err=True)

        def show_compilation() -> None:
            nonlocal compiling, announced
            if bar.disable and not announced:
                click.echo(f"{COMPILING}: the next start is quicker", err=True)
            elif not compiling:
                bar.update(task, description=COMPILING)
            compiling = announced = True

        with on_compile(show_compilation):
            yield update


def _bar() -> Progress:
    """Return a bar with the time that it takes: "2 s, about 96 s left"."""
    from rich import progress as parts
    from rich.text import Text

    class Times(parts.ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(times(task.elapsed or 0.0, task.time_remaining))

    output = terminal(stderr=True)
    return parts.Progress(
        parts.TextColumn("{task.description}", markup=False),
        parts.BarColumn(),
        parts.TextColumn("{task.percentage:>3.0f} %"),
        Times(),
        console=output,
        transient=True,
        disable=not output.is_interactive,
    )


def times(elapsed: float, left: float | None) -> str:
    """Say how long work has taken and how long it will.

    >>> times(2.4, 96.0), times(2.4, None), times(400, 3600)
    ('2 s, about 96 s left', '2 s', '7 min, about 60 min left')
    """
    rest = "" if left is None else f", about {duration(left)} left"
    return f"{duration(elapsed)}{rest}"


def duration(seconds: float) -> str:
    """Spell a time in the unit that reads best.

    >>> duration(96), duration(600), duration(20_000)
    ('96 s', '10 min', '5.6 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def counter(progress: Update, total: int) -> Callable[[int], None]:
    """Return a callback that adds up the work just done and reports it."""
    done = 0

    def tick(amount: int) -> None:
        nonlocal done
        done += amount
        progress("", done, total)

    return tick


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table; numbers are aligned on the right. Where it has no room, a line a value."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    head, *body = [[plain(_format(cell)) for cell in row] for row in (columns, *rows)]
    terminal().print(plain(title), style="bold", highlight=False)
    widths = _widths([head, *body], terminal().width - 3 * len(head) - 1)
    if widths is None:
        _print_values(head, body)
        return
    output = Table(box=SIMPLE_HEAD)
    for index, (column, width) in enumerate(zip(head, widths, strict=True)):
        number = bool(rows) and not isinstance(rows[0][index], str)
        output.add_column(
            column, justify="right" if number else "left", width=width, overflow="fold"
        )
    for row in body:
        output.add_row(*row)
    terminal().print(output)


def _widths(rows: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Return widths of the columns that break no number, and no name of a row; None without room.

    >>> rows = [["policy", "smallest group"], ["best-arm", "4"]]
    >>> _widths(rows, 30), _widths(rows, 18), _widths(rows, 15)
    ([8, 14], [8, 10], None)
    >>> _widths([["C", "gain on all"], ["5", "3% (1 to 5)"]], 10)
    [1, 9]
    """
    from rich.cells import cell_len

    columns = list(zip(*rows, strict=True))
    widths = [max(map(cell_len, cells)) for cells in columns]
    words = [[cell_len(word) for cell in cells for word in cell.split()] for cells in columns]
    needed = [widths[0], *(min(max(lengths), LONGEST_WORD) for lengths in words[1:])]
    whole = [max(map(cell_len, cells[1:]), default=0) for cells in columns]
    for narrowest in (list(map(max, needed, whole)), needed):  # headers are broken before cells
        while sum(widths) > room:
            wide = [index for index, width in enumerate(widths) if width > narrowest[index]]
            if not wide:
                break
            widths[max(wide, key=lambda index: (widths[index], index))] -= 1
    return widths if sum(widths) <= room else None


def _print_values(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print what a table would hold, a line for each value of a row."""
    from rich.padding import Padding

    for row in rows:
        terminal().print()
        for index, (column, cell) in enumerate(zip(head, row, strict=True)):
            if cell:
                line = Padding(f"{column}: {cell}", (0, 0, 0, 2 if index else 0), expand=False)
                terminal().print(line, highlight=False)
    terminal().print()


def plain(text: str) -> str:
    """Return a text as the terminal will show it, so that columns are as wide as what they hold."""
    encoding = terminal().encoding
    return text.encode(encoding, "shoal").decode(encoding)


def _format(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)
