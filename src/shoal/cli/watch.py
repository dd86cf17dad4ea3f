"""What ``shoal demo`` shows while it plays, and how it ends: two pictures and three sentences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from shoal.cli import console
from shoal.cli.story import Story, favourite_shares

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from shoal.arrays import IntArray
    from shoal.client import Release
    from shoal.experiments.audience import Audience

RECENT = 10  # rounds that a reward is averaged over, as on the dashboard: one is noisy
FIRST = 10
BARS = "▁▂▃▄▅▆▇█"
WIDTH = 50
PICTURE_LINES = 8  # lines of the first picture
LONGEST = 24  # characters of a full bar in the second picture
IN_USE = 0.01  # the share of learners from which on a reminder counts as used


@dataclass
class Watch:
    """The rewards and the releases of a campaign so far, beside what could be earned per user.

    A round's reward per user is known to the audience alone; all others know released totals.
    """

    story: Story
    best_single: float
    full_knowledge: float
    min_group_size: int
    rewards: list[float] = field(default_factory=list)
    arms: IntArray | None = None  # (n_users,), of the last round
    totals: int = 0
    smallest: int | None = None
    withheld: int = 0

    @property
    def rounds(self) -> int:
        """How many rounds were played."""
        return len(self.rewards)

    def play(self, audience: Audience, campaign: str) -> None:
        """Play the next round."""
        self.rewards.append(audience.play(campaign, self.rounds + 1))
        self.arms = audience.arms

    def add_release(self, release: Release) -> None:
        """Add what was released of a round."""
        self.totals += len(release.totals)
        self.withheld += release.withheld
        sizes = [total.reporters for total in release.totals]
        if self.smallest is not None:
            sizes.append(self.smallest)
        self.smallest = min(sizes, default=None)

    def summary(self) -> dict[str, Any]:
        """Return the numbers so far by name."""
        return {
            "rounds": self.rounds,
            "first_reward": _mean(self.rewards[:FIRST]),
            "reward": _mean(self.rewards[-RECENT:]),
            "best_single_arm": self.best_single,
            "full_knowledge": self.full_knowledge,
            "min_group_size": self.min_group_size,
            "totals": self.totals,
            "smallest_group": self.smallest,
            "withheld": self.withheld,
            "arms_in_use": self._in_use(),
            "favourite_share": self._favourites(),
        }

    def table(self) -> Table:
        """Return the numbers as a table, with the curve so far."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, show_header=False, title="", pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column()
        table.add_row("round", f"{self.rounds:,}")
        table.add_row("learners who come back", f"{_mean(self.rewards[-RECENT:]):.1%}")
        table.add_row("", console.plain(self._curve()))
        table.add_row(f"in the first {FIRST} rounds", f"{_mean(self.rewards[:FIRST]):.1%}")
        table.add_row("best single reminder, true mean", f"{self.best_single:.1%}")
        table.add_row("full knowledge, true mean", f"{self.full_knowledge:.1%}")
        table.add_row("totals released", f"{self.totals:,}")
        table.add_row("smallest group", f"{self.smallest or '-'}  (C = {self.min_group_size})")
        table.add_row("groups withheld", f"{self.withheld:,}")
        return table

    def print_summary(self) -> None:
        """Print the table, the two pictures, and three sentences on what they mean."""
        console.terminal().print(self.table())
        if self.smallest is None:
            click.echo("It ended before anything was learnt.")
            return
        click.echo("\n".join([*self._learning_lines(), ""]))
        self._print_shares()
        click.echo("\n".join(self.sentences()))

    def sentences(self) -> list[str]:
        """Return what happened, who got what, and what was seen, a sentence each."""
        reward, n_users = _mean(self.rewards[-RECENT:]), len(self.story.taste)
        gain = reward / self.best_single - 1
        n_arms = len(self.story.reminders)
        all_used = self._in_use() == n_arms
        used = f"all {n_arms} reminders are" if all_used else f"{self._in_use()} of {n_arms} are"
        early = self._not_found()
        wait = f" What suits {early} is not found yet; --seconds plays longer." if early else ""
        return [
            f"After {self.rounds:,} rounds {reward:.0%} of the learners come back, "
            f"{abs(gain):.0%} {'more' if gain >= 0 else 'less'} than with the one reminder that "
            "is best for all.",
            f"{self._favourites():.0%} of the {n_users:,} learners get the reminder that suits "
            f"their taste, and {used} in use.{wait}",
            f"It was learnt from {self.totals:,} totals of at least {self.smallest} learners; no "
            "learner's response was stored, or seen by what learns.",
        ]

    def save_pictures(self, folder: Path) -> None:
        """Write both pictures into an existing folder, as PNG and SVG."""
        from shoal.figures.story import learning_figure, shares_figure
        from shoal.figures.style import save

        references = {
            "the best single reminder": self.best_single,
            "full knowledge of every learner": self.full_knowledge,
        }
        title = f"Learners who come back, learnt from totals of at least {self.smallest}"
        save(learning_figure(self.rewards, references, title=title), folder / "learning")
        if self.arms is not None:
            shares = favourite_shares(self.story, self.arms)
            figure = shares_figure(
                shares, self.story.tastes, self.story.reminders, title="Who gets which reminder"
            )
            save(figure, folder / "reminders")

    def _in_use(self) -> int:
        """Return how many arms a noticeable share of the users play."""
        if self.arms is None:
            return 0
        counts = [int((self.arms == arm).sum()) for arm in range(len(self.story.reminders))]
        return sum(count >= IN_USE * len(self.arms) for count in counts)

    def _not_found(self) -> str:
        """Return a taste whose reminder goes to fewer of its users than chance would send it to."""
        if self.arms is None:
            return ""
        shares = favourite_shares(self.story, self.arms).diagonal()
        lowest = int(shares.argmin())
        return self.story.tastes[lowest] if shares[lowest] < 1 / len(shares) else ""

    def _favourites(self) -> float:
        """Return the share of users who play the arm that suits their taste."""
        return 0.0 if self.arms is None else float((self.arms == self.story.taste).mean())

    def _parts(self) -> list[float]:
        """Return the rewards so far, averaged to at most ``WIDTH`` numbers."""
        size = -(-self.rounds // WIDTH) or 1
        return [_mean(self.rewards[i : i + size]) for i in range(0, self.rounds, size)]

    def _curve(self) -> str:
        """Draw the rewards so far on one line, from the least to full knowledge."""
        parts = self._parts()
        lowest, steps = min(parts, default=0.0), len(BARS) - 1
        reach = max(self.full_knowledge - lowest, 1e-9)
        return "".join(BARS[min(steps, int(steps * (p - lowest) / reach))] for p in parts)

    def _learning_lines(self) -> list[str]:
        """Draw the rewards as columns from 0 on, with the two references beside them."""
        parts = self._parts()
        top = max(self.full_knowledge, *parts)
        rows = {_row(self.full_knowledge, top): f"full knowledge, {self.full_knowledge:.0%}"}
        rows[_row(self.best_single, top)] = f"best single reminder, {self.best_single:.0%}"
        lines = ["Learners who come back, round by round"]
        for row in range(PICTURE_LINES, 0, -1):
            empty = "-" if row in rows else " "
            columns = "".join(BARS[-1] if _row(part, top) >= row else empty for part in parts)
            lines.append(
                f"{top * row / PICTURE_LINES:5.0%} |{columns} {rows.get(row, '')}".rstrip()
            )
        return lines

    def _print_shares(self) -> None:
        """Print for each taste which reminder suits it, and who gets it."""
        assert self.arms is not None
        shares = favourite_shares(self.story, self.arms)
        rows = [
            (
                taste,
                int((self.story.taste == i).sum()),
                reminder,
                f"{shares[i, i]:4.0%} {BARS[-1] * round(LONGEST * shares[i, i])}",
            )
            for i, (taste, reminder) in enumerate(
                zip(self.story.tastes, self.story.reminders, strict=True)
            )
        ]
        console.table(
            "Who gets the reminder that suits them",
            ["taste", "learners", "reminder", "get it"],
            rows,
        )


def _mean(values: list[float]) -> float:
    return sum(values) / max(1, len(values))


def _row(value: float, top: float) -> int:
    """Return the line of the first picture on which a value lies, from 1 on."""
    return max(1, round(PICTURE_LINES * value / max(top, 1e-9)))
