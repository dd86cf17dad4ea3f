"""``shoal demo``: the whole service, learning which reminder suits each learner of an app."""

from __future__ import annotations

import json
import signal
import time
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shoal.cli import console, options
from shoal.extras import need

if TYPE_CHECKING:
    import numpy as np

    from shoal.cli.story import Story
    from shoal.cli.watch import Watch
    from shoal.client import Client
    from shoal.experiments.audience import Audience

CAMPAIGN = "demo"
MIN_ROUNDS = 40
"""Rounds that are played at least, however slow the machine is: fewer teach too little."""

INTRODUCTION = (
    "A learning app sends each of its {users:,} learners one of {arms} reminders a round, and must "
    "not know who comes back.\nShoal learns which reminder suits whom from totals over at least "
    "{least} learners."
)


@click.command(name="demo")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help=f"End after this time, and not before {MIN_ROUNDS} rounds.",
)
@click.option("--headless", is_flag=True, help="No live table: print the summary at the end.")
@click.option("--users", "n_users", default=2000, help="Learners N.")
@click.option("--arms", "n_arms", default=6, help="Reminders K.")
@click.option(
    "--min-group-size",
    type=click.IntRange(min=5),
    default=10,
    help="Least users C behind any total that is seen.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of learners and their days.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port; 0 is any free one.")
@click.option(
    "--picture",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A PNG file for a picture of the campaign's page at the end.",
)
@options.out("folder", "A new folder for the two pictures of the end (PNG, SVG).")
@options.as_json
def command(
    seconds: float | None,
    headless: bool,
    min_group_size: int,
    port: int,
    picture: Path | None,
    out: Path | None,
    as_json: bool,
    **population: int,
) -> None:
    """Watch the service learn which reminder suits each learner of an app, over HTTP.

    Everything happens on this machine, in a temporary folder; Ctrl-C ends it and cleans up. It ends
    with three sentences and two pictures.
    """
    need("service")
    with console.loading():
        from shoal.cli.browser import save_picture
        from shoal.cli.watch import Watch
        from shoal.client import Client
        from shoal.experiments.audience import Audience
        from shoal.service.embedded import embedded

        story, rng = draw_learners(min_group_size=min_group_size, **population)
    with ExitStack() as stack:
        handler = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
        stack.callback(signal.signal, signal.SIGTERM, handler)
        with console.waiting("starting the service"):
            service = stack.enter_context(embedded(port=port))
            operator, app, analyst = (
                stack.enter_context(Client(service.url, service.tokens[role]))
                for role in ("operator", "app", "analyst")
            )
            people = Audience(story.means, story.reminders, operator=operator, app=app, rng=rng)
            people.join(CAMPAIGN, min_group_size=min_group_size)
        watch = Watch(story, people.best_single, people.full_knowledge, min_group_size)
        if not as_json:
            n_users, n_arms = story.means.shape
            click.echo(INTRODUCTION.format(users=n_users, arms=n_arms, least=min_group_size))
            end = "It ends by itself; Ctrl-C ends it before." if seconds else "Ctrl-C ends it."
            click.echo(
                f"Watch it at {service.url}/ and log in with the analyst's token:\n"
                f"{service.tokens['analyst']}\n{end}"
            )
        try:
            play(watch, people, analyst, seconds=seconds, live=not (headless or as_json))
        except KeyboardInterrupt:
            click.echo("stopping", err=True)
        if picture is not None:
            with console.waiting("taking a picture of the page"):
                save_picture(service, CAMPAIGN, picture)
    if as_json:
        click.echo(json.dumps(watch.summary()))
    else:
        watch.print_summary()
    if out is not None and watch.smallest is not None:
        write_pictures(watch, out)


def draw_learners(
    *, n_users: int, n_arms: int, min_group_size: int, seed: int
) -> tuple[Story, np.random.Generator]:
    """Draw the learners; return them and the generator for what they do."""
    import numpy as np

    from shoal.cli.story import draw_story
    from shoal.model import Problem

    Problem(n_users, n_arms, min_group_size)  # refuses impossible sizes before anything starts
    rng = np.random.default_rng(seed)
    return draw_story(n_users, n_arms, rng=rng), rng


def play(
    watch: Watch, people: Audience, analyst: Client, *, seconds: float | None, live: bool
) -> None:
    """Play rounds until the time is over; the first waits for the learner, which may compile."""
    from rich.live import Live

    with console.waiting(
        f"the learner plans the first round; on a new machine: {console.COMPILING}"
    ):
        watch.play(people, CAMPAIGN)
    screen: Any = Live(console=console.terminal(), transient=True, auto_refresh=False)
    quiet = console.waiting("playing") if seconds else nullcontext()
    ends = time.monotonic() + (seconds or float("inf"))
    with screen if live else quiet:
        while watch.rounds < MIN_ROUNDS or time.monotonic() < ends:
            watch.play(people, CAMPAIGN)  # the round before is on the learner's record by now
            watch.add_release(analyst.release(CAMPAIGN, watch.rounds - 1))
            if live:
                screen.update(watch.table(), refresh=True)


def write_pictures(watch: Watch, out: Path) -> None:
    """Write the two pictures into a new folder."""
    from shoal.experiments.comparison import new_folder

    with new_folder(out) as folder, console.waiting("drawing"):
        watch.save_pictures(folder)
    click.echo(f"Pictures: {out / 'learning.png'} and {out / 'reminders.png'}", err=True)
