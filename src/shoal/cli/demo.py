"""``shoal demo``: the whole service, learning from a simulated population."""

from __future__ import annotations

import json
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shoal.cli.extras import need_service
from shoal.cli.options import json_option

if TYPE_CHECKING:
    import numpy as np

    from shoal.arrays import FloatArray
    from shoal.service.embedded import Embedded

CAMPAIGN = "demo"
RATE = 0.15  # of clicks, before anything is learnt: twice that of real banners, to see it sooner


@click.command(name="demo", context_settings={"show_default": True})
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
@json_option
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
    need_service()
    from shoal.cli import console
    from shoal.cli.watching import Watch, live
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
            console.out.print(
                f"Watch it at {service.url}/ and log in with the analyst's token:\n"
                f"{service.tokens['analyst']}\nCtrl-C ends it.",
                highlight=False,
                soft_wrap=True,
            )
        try:
            with live(watch, visible=not (headless or as_json)) as redraw:
                ends = time.monotonic() + (seconds or float("inf"))
                while watch.rounds < 2 or time.monotonic() < ends:
                    number = watch.rounds + 1
                    watch.add_reward(audience.play(CAMPAIGN, number))
                    if number > 1:  # the round before is on the learner's record by now
                        watch.add_release(analyst.release(CAMPAIGN, number - 1))
                    redraw()
        except KeyboardInterrupt:
            console.err.print("stopping")
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


def save_picture(service: Embedded, file: Path) -> None:
    """Take a picture of the campaign's page, or say what is missing for it."""
    from shoal.cli import console
    from shoal.cli.browser import take_picture
    from shoal.errors import ShoalError

    message = f"Picture of the campaign's page: {file}"
    try:
        take_picture(service.url, service.tokens["analyst"], f"/campaigns/{CAMPAIGN}", file)
    except ShoalError as error:
        message = f"No picture: {error}"
    console.err.print(message, highlight=False)
