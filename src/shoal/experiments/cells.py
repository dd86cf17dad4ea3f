"""Running the cells of an experiment on an engine, with progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Protocol, TypeVar

from shoal.engines import Engine, Tick

Progress = Callable[[str, int, int], None]
"""Called with (what has just finished or "", rounds done, rounds in all)."""


class AnyCell(Protocol):
    """What every kind of cell can say of itself."""

    @property
    def title(self) -> str:
        """What it plays, in a few words."""
        ...

    @property
    def rounds(self) -> int:
        """Rounds to play."""
        ...


Cell = TypeVar("Cell", bound=AnyCell)
Result = TypeVar("Result")


def run_cells(
    work: Callable[[Cell, Tick], Result],
    cells: Sequence[Cell],
    engine: Engine,
    progress: Progress | None = None,
) -> list[Result]:
    """Run the cells on an engine and return what they give, in order."""
    told = progress or (lambda finished, done, total: None)
    total = sum(cell.rounds for cell in cells)
    done = 0

    def tick(rounds: int) -> None:
        nonlocal done
        done += rounds
        told("", done, total)

    results: dict[int, Result] = {}
    with closing(engine.run(work, cells, tick=tick)) as finished:
        for index, result in finished:
            results[index] = result
            told(cells[index].title, done, total)
    return [results[index] for index in range(len(cells))]
