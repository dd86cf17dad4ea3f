"""Output for people: progress on standard error, tables on standard output."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

# Names of folders and options are output as they are: "run[a]" is no markup, ":x:" no emoji.
out = Console(markup=False, emoji=False)
err = Console(stderr=True, markup=False, emoji=False)


class Update(Protocol):
    """Moves a progress bar."""

    def __call__(self, finished: str, done: int, total: int, title: str | None = None) -> None:
        """Show what has just finished (or ""), the work done, the work in all, and a new title."""


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """Show that work of unknown length is in progress."""
    with err.status(title):
        yield


@contextmanager
def progress(title: str) -> Iterator[Update]:
    """Show a bar; yields the function that moves it."""
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_interactive,
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
    output = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for index, column in enumerate(columns):
        number = bool(rows) and not isinstance(rows[0][index], str)
        output.add_column(
            column, justify="right" if number else "left", no_wrap=index == 0, overflow="fold"
        )
    for row in rows:
        output.add_row(*(_format(value) for value in row))
    out.print(output)


def _format(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)
