"""A running campaign on the terminal: a live table, then its summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.live import Live
from rich.table import Table

from shoal.cli import console

if TYPE_CHECKING:
    from shoal.client import Release

RECENT = 10  # rounds that a reward is averaged over, as on the dashboard: one is noisy
FIRST = 10
BARS = "▁▂▃▄▅▆▇█"
WIDTH = 50


class Watch:
    """The rewards and the releases of a campaign so far.

    Parameters
    ----------
    best_single, full_knowledge
        Reward per user of the best arm for all together, and of everyone's own best arm.
    min_group_size
        C.
    """

    def __init__(self, best_single: float, full_knowledge: float, min_group_size: int) -> None:
        self._best_single, self._full_knowledge = best_single, full_knowledge
        self._min_group_size = min_group_size
        self._rewards: list[float] = []
        self._totals = self._withheld = 0
        self._smallest: int | None = None

    @property
    def rounds(self) -> int:
        """How many rounds were played."""
        return len(self._rewards)

    def add_reward(self, reward: float) -> None:
        """Add a round's reward per user, which only the audience knows."""
        self._rewards.append(reward)

    def add_release(self, release: Release) -> None:
        """Add a round's released totals, which are all that anyone else knows."""
        self._totals += len(release.totals)
        self._withheld += release.withheld
        sizes = [total.reporters for total in release.totals]
        if self._smallest is not None:
            sizes.append(self._smallest)
        self._smallest = min(sizes, default=None)

    def summary(self) -> dict[str, float | int | None]:
        """Return the numbers so far by name."""
        return {
            "rounds": self.rounds,
            "first_reward": _mean(self._rewards[:FIRST]),
            "reward": self._recent_reward,
            "best_single_arm": self._best_single,
            "full_knowledge": self._full_knowledge,
            "min_group_size": self._min_group_size,
            "totals": self._totals,
            "smallest_group": self._smallest,
            "withheld": self._withheld,
        }

    def table(self) -> Table:
        """Return the numbers as a table, with the curve so far."""
        table = Table(box=SIMPLE_HEAD, show_header=False, title="", pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column()
        for name, value in (
            ("round", f"{self.rounds:,}"),
            ("reward per user", f"{self._recent_reward:.3f}"),
            ("", self._curve()),
            (f"in the first {FIRST} rounds", f"{_mean(self._rewards[:FIRST]):.3f}"),
            ("best single arm, true mean", f"{self._best_single:.3f}"),
            ("full knowledge, true mean", f"{self._full_knowledge:.3f}"),
            ("totals released", f"{self._totals:,}"),
            ("smallest group", f"{self._smallest or '-'}  (C = {self._min_group_size})"),
            ("groups withheld", f"{self._withheld:,}"),
        ):
            table.add_row(name, value)
        return table

    @property
    def _recent_reward(self) -> float:
        return _mean(self._rewards[-RECENT:])

    def print_summary(self) -> None:
        """Print the table and a sentence on what it means."""
        console.out.print(self.table())
        if self._smallest is None:
            console.out.print("It ended before anything was learnt.")
            return
        gain = self._recent_reward / self._best_single - 1
        more = "more" if gain >= 0 else "less"
        console.out.print(
            f"Everyone is shown an arm of their own: {abs(gain):.0%} {more} reward than the best "
            f"single arm gives.\nIt was learnt from totals of at least {self._smallest} users; no "
            "user's reward was stored, or seen by the learner.",
            highlight=False,
        )

    def _curve(self) -> str:
        """Draw the rewards so far, from the least to full knowledge, at most ``WIDTH`` wide."""
        size = -(-self.rounds // WIDTH) or 1
        parts = [_mean(self._rewards[i : i + size]) for i in range(0, self.rounds, size)]
        least, steps = min(parts, default=0.0), len(BARS) - 1
        reach = max(self._full_knowledge - least, 1e-9)
        return "".join(BARS[min(steps, int(steps * (p - least) / reach))] for p in parts)


@contextmanager
def live(watch: Watch, *, visible: bool) -> Iterator[Callable[[], None]]:
    """Show the table while the block runs; yields a function that redraws it."""
    if not visible:
        yield lambda: None
        return
    with Live(console=console.out, transient=True, auto_refresh=False) as screen:
        yield lambda: screen.update(watch.table(), refresh=True)


def _mean(values: list[float]) -> float:
    return sum(values) / max(1, len(values))
