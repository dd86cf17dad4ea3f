"""``shoal demo``: the whole service, learning from a simulated population."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shoal.cli import console, options
from shoal.errors import ShoalError
from shoal.extras import need

if TYPE_CHECKING:
    import numpy as np
    from playwright.sync_api import Browser
    from rich.table import Table

    from shoal.arrays import FloatArray
    from shoal.client import Release
    from shoal.service.embedded import Embedded

CAMPAIGN = "demo"
RATE = 0.15  # of clicks, before anything is learnt: twice that of real banners, to see it sooner
RECENT = 10  # rounds that a reward is averaged over, as on the dashboard: one is noisy
FIRST = 10
BARS = "▁▂▃▄▅▆▇█"
WIDTH = 50
STEP_MILLISECONDS = 10_000  # that any one step may take
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_OPTIONS = [
    "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--hide-scrollbars",
    "--no-sandbox",  # it only ever sees this machine's pages
]  # fmt: skip


@click.command(name="demo")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="End after this time.")
@click.option("--headless", is_flag=True, help="No live table: print the summary at the end.")
@click.option("--users", "n_users", default=2000, help="Users N.")
@click.option("--arms", "n_arms", default=6, help="Arms K.")
@click.option(
    "--min-group-size",
    type=click.IntRange(min=5),
    default=10,
    help="Least users C behind any total that is seen.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of users' tastes and clicks.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port; 0 is any free one.")
@click.option(
    "--picture",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A PNG file for a picture of the campaign's page at the end.",
)
@options.as_json
def command(
    seconds: float | None,
    headless: bool,
    min_group_size: int,
    port: int,
    picture: Path | None,
    as_json: bool,
    **population: int,
) -> None:
    """Start the service and play a population with tastes against it, over HTTP, to watch it learn.

    Everything happens on this machine, in a temporary folder; Ctrl-C ends it and cleans up.
    """
    need("service")
    from rich.live import Live

    from shoal.client import Client
    from shoal.experiments.audience import Audience
    from shoal.service.embedded import embedded

    means, rng = draw_means(min_group_size=min_group_size, **population)
    with ExitStack() as stack:
        handler = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
        stack.callback(signal.signal, signal.SIGTERM, handler)
        with console.waiting("starting the service"):
            service = stack.enter_context(embedded(port=port))
            operator, app, analyst = (
                stack.enter_context(Client(service.url, service.tokens[role]))
                for role in ("operator", "app", "analyst")
            )
            arms = [f"arm {arm + 1}" for arm in range(means.shape[1])]
            audience = Audience(means, arms, operator=operator, app=app, rng=rng)
            audience.join(CAMPAIGN, min_group_size=min_group_size)
        watch = Watch(audience.best_single, audience.full_knowledge, min_group_size)
        if not as_json:
            click.echo(
                f"Watch it at {service.url}/ and log in with the analyst's token:\n"
                f"{service.tokens['analyst']}\nCtrl-C ends it."
            )
        screen = Live(console=console.terminal(), transient=True, auto_refresh=False)
        live = not (headless or as_json)
        try:
            with screen if live else nullcontext():
                ends = time.monotonic() + (seconds or float("inf"))
                while watch.rounds < 2 or time.monotonic() < ends:
                    number = watch.rounds + 1
                    watch.rewards.append(audience.play(CAMPAIGN, number))
                    if number > 1:  # the round before is on the learner's record by now
                        watch.add_release(analyst.release(CAMPAIGN, number - 1))
                    if live:
                        screen.update(watch.table(), refresh=True)
        except KeyboardInterrupt:
            click.echo("stopping", err=True)
        if picture is not None:
            save_picture(service, picture)
    if as_json:
        click.echo(json.dumps(watch.summary()))
    else:
        watch.print_summary()


def draw_means(
    *, n_users: int, n_arms: int, min_group_size: int, seed: int
) -> tuple[FloatArray, np.random.Generator]:
    """Draw the users' tastes; return them and the generator for their clicks."""
    import numpy as np

    from shoal.instances import clustered
    from shoal.model import Problem

    Problem(n_users, n_arms, min_group_size)  # refuses impossible sizes before anything starts
    rng = np.random.default_rng(seed)
    return clustered(n_users, n_arms, rng=rng, rate=RATE), rng


@dataclass
class Watch:
    """The rewards and the releases of a campaign so far, beside what could be earned per user.

    A round's reward per user is known to the audience alone; all others know released totals.
    """

    best_single: float
    full_knowledge: float
    min_group_size: int
    rewards: list[float] = field(default_factory=list)
    totals: int = 0
    smallest: int | None = None
    withheld: int = 0

    @property
    def rounds(self) -> int:
        """How many rounds were played."""
        return len(self.rewards)

    def add_release(self, release: Release) -> None:
        """Add what was released of a round."""
        self.totals += len(release.totals)
        self.withheld += release.withheld
        sizes = [total.reporters for total in release.totals]
        if self.smallest is not None:
            sizes.append(self.smallest)
        self.smallest = min(sizes, default=None)

    def summary(self) -> dict[str, float | int | None]:
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
        }

    def table(self) -> Table:
        """Return the numbers as a table, with the curve so far."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, show_header=False, title="", pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column()
        table.add_row("round", f"{self.rounds:,}")
        table.add_row("reward per user", f"{_mean(self.rewards[-RECENT:]):.3f}")
        table.add_row("", self._curve())
        table.add_row(f"in the first {FIRST} rounds", f"{_mean(self.rewards[:FIRST]):.3f}")
        table.add_row("best single arm, true mean", f"{self.best_single:.3f}")
        table.add_row("full knowledge, true mean", f"{self.full_knowledge:.3f}")
        table.add_row("totals released", f"{self.totals:,}")
        table.add_row("smallest group", f"{self.smallest or '-'}  (C = {self.min_group_size})")
        table.add_row("groups withheld", f"{self.withheld:,}")
        return table

    def print_summary(self) -> None:
        """Print the table and a sentence on what it means."""
        console.terminal().print(self.table())
        if self.smallest is None:
            click.echo("It ended before anything was learnt.")
            return
        gain = _mean(self.rewards[-RECENT:]) / self.best_single - 1
        more = "more" if gain >= 0 else "less"
        click.echo(
            f"Everyone is shown an arm of their own: {abs(gain):.0%} {more} reward than the best "
            f"single arm gives.\nIt was learnt from totals of at least {self.smallest} users; no "
            "user's reward was stored, or seen by the learner."
        )

    def _curve(self) -> str:
        """Draw the rewards so far, from the least to full knowledge, at most ``WIDTH`` wide."""
        size = -(-self.rounds // WIDTH) or 1
        parts = [_mean(self.rewards[i : i + size]) for i in range(0, self.rounds, size)]
        least, steps = min(parts, default=0.0), len(BARS) - 1
        reach = max(self.full_knowledge - least, 1e-9)
        return "".join(BARS[min(steps, int(steps * (p - least) / reach))] for p in parts)


def _mean(values: list[float]) -> float:
    return sum(values) / max(1, len(values))


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start the browser of this machine, or say what is missing for it."""
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        raise ShoalError("a picture needs Chromium: sudo apt-get install chromium.")
    try:
        from playwright.sync_api import Error, sync_playwright
    except ModuleNotFoundError:
        raise ShoalError("a picture needs playwright: pip install playwright.") from None
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=executable, args=BROWSER_OPTIONS)
            yield browser
            browser.close()
    except Error as error:
        reason = error.message.splitlines()[0]
        raise ShoalError(f"the picture could not be taken: {reason}") from None


def save_picture(service: Embedded, file: Path) -> None:
    """Log in as the analyst and save the campaign's page, or say what is missing for it."""
    message = f"Picture of the campaign's page: {file}"
    try:
        with open_browser() as browser:
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.set_default_timeout(STEP_MILLISECONDS)
            page.goto(f"{service.url}/login")
            page.fill("input[name=token]", service.tokens["analyst"])
            page.press("input[name=token]", "Enter")
            page.wait_for_url(lambda address: "/login" not in address)
            page.goto(f"{service.url}/campaigns/{CAMPAIGN}", wait_until="networkidle")
            page.screenshot(path=file, full_page=True)
    except ShoalError as error:
        message = f"No picture: {error}"
    click.echo(message, err=True)
