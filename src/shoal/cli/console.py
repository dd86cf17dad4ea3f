"""Output for people: progress on standard error, tables on standard output.

Rich is loaded with the first output, so that the modules of commands are quick to load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console


class Update(Protocol):
    """Moves a progress bar."""

    def __call__(self, finished: str, done: int, total: int, title: str | None = None) -> None:
        """Show what has just finished (or ""), the work done, the work in all, and a new title."""


@cache
def terminal(*, stderr: bool = False) -> Console:
    """Return what writes to a standard stream, names as they are: "run[a]" is no markup."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False)


def waiting(title: str) -> AbstractContextManager[object]:
    """Show that work of unknown length is in progress."""
    return terminal(stderr=True).status(title)


@contextmanager
def progress(title: str) -> Iterator[Update]:
    """Show a bar; yields the function that moves it."""
    from rich import progress as parts

    with parts.Progress(
        parts.TextColumn("{task.description}", markup=False),
        parts.BarColumn(),
        parts.TextColumn("{task.percentage:>3.0f} %"),
        parts.TimeElapsedColumn(),
        parts.TextColumn("left"),
        parts.TimeRemainingColumn(),
        console=terminal(stderr=True),
        transient=True,
        disable=not terminal(stderr=True).is_interactive,
    ) as bar:
        task = bar.add_task(title, total=None)

        def update(finished: str, done: int, total: int, title: str | None = None) -> None:
            bar.update(task, completed=done, total=total, description=title)
            if finished:
                bar.console.print(f"done: {finished}", style="dim", highlight=False)

        yield update


def counter(progress: Update, total: int) -> Callable[[int], None]:
    """Return a callback that adds up the work just done and reports it."""
    done = 0

    def tick(amount: int) -> None:
        nonlocal done
        done += amount
        progress("", done, total)

    return tick


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table; numbers are aligned on the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    output = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for index, column in enumerate(columns):
        number = bool(rows) and not isinstance(rows[0][index], str)
        output.add_column(
            column, justify="right" if number else "left", no_wrap=index == 0, overflow="fold"
        )
    for row in rows:
        output.add_row(*map(_format, row))
    terminal().print(output)


def _format(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)
