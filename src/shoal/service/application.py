"""The application: the HTTP interface and the dashboard behind one guard, and their schedules."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from shoal.model.merging import merge_short
from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.schedule import tick
from shoal.service.api import (
    assignment_file,
    assignments,
    campaigns,
    learner,
    reports,
    rounds,
    status,
)
from shoal.service.api import tokens as token_routes
from shoal.service.dashboard import (
    assets,
    checks,
    exports,
    login,
    new_campaign,
    notes,
    operations,
    progress,
    tokens,
    views,
)
from shoal.service.dashboard.rendering import error_page
from shoal.service.dashboard.sessions import LoginAttempts
from shoal.service.web import answers
from shoal.service.web.guard import Guard
from shoal.service.web.metrics import Metrics
from shoal.service.web.readiness import ReadinessCheck

log = logging.getLogger("shoal.service")

ROUTES = (
    campaigns, rounds, assignments, assignment_file, reports, learner, token_routes, status,
    progress,
)  # fmt: skip
AUDIT_SECONDS = 3600.0  # between checks of all that was released
PAGES = (login, views, exports, new_campaign, operations, notes, tokens, assets)


def create_app(
    aggregator: Aggregator,
    *,
    max_body_bytes: int = 16 * 2**20,
    body_seconds: float = 20.0,
    tick_seconds: float = 1.0,
    secure_cookies: bool = False,
) -> FastAPI:
    """Create the aggregator's application; it closes the aggregator when it stops.

    With ``secure_cookies``, browsers send a session's cookie over HTTPS only, whatever a proxy says
    of how it was asked.
    """
    epochs = aggregator.epochs
    metrics = Metrics(
        aggregator.releases.shown,
        last_contact_at=lambda: epochs.last_contact_at,
        n_ahead=epochs.n_ahead,
    )
    aggregator.releases.on_release = metrics.add_release
    aggregator.epochs.on_abandon = metrics.add_abandoned

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        tasks = [
            asyncio.create_task(_keep_schedules(aggregator, tick_seconds)),
            asyncio.create_task(_keep_checking(aggregator, tick_seconds)),
        ]
        yield
        for task in tasks:
            task.cancel()
        _keep_uses(aggregator)
        aggregator.close()

    app = FastAPI(
        title="Shoal",
        version="1",
        description="Personalise for everyone while observing no one.",
        lifespan=lifespan,
        responses=answers.PROBLEMS,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.aggregator = aggregator
    app.state.metrics = metrics
    app.state.login_attempts = LoginAttempts()
    app.state.readiness = ReadinessCheck(aggregator)
    app.state.secure_cookies = secure_cookies
    for module in (*ROUTES, *PAGES):
        app.include_router(module.router)
    answers.install(app, page=error_page)
    app.add_middleware(reports.FastReports, aggregator=aggregator)
    app.add_middleware(
        Guard, metrics=metrics, max_body_bytes=max_body_bytes, body_seconds=body_seconds
    )
    return app


def warm_up() -> None:
    """Prepare in a thread what the first release and the first page would wait for longest."""

    def work() -> None:
        none = np.empty(0, np.int64)
        merge_short(none, none, 1)  # compiles it
        assets.prepare_charts()

    threading.Thread(target=work, name="warm-up", daemon=True).start()


async def _keep_schedules(aggregator: Aggregator, tick_seconds: float) -> None:
    """Open and close the rounds of campaigns with a schedule."""
    while True:
        await asyncio.sleep(tick_seconds)
        try:
            await run_in_threadpool(tick, aggregator)
        except Exception as error:  # tried again with the next tick
            log.error("schedule fails: %s", type(error).__name__)
            aggregator.on_schedule = False


async def _keep_checking(aggregator: Aggregator, tick_seconds: float) -> None:
    """Check new campaigns at every tick, and all others every hour."""
    elapsed = 0.0
    while True:
        await asyncio.sleep(tick_seconds)
        elapsed += tick_seconds
        repeat = elapsed >= AUDIT_SECONDS
        try:
            await run_in_threadpool(checks.run_due, aggregator, repeat=repeat)
        except Exception as error:  # tried again with the next tick
            log.error("checks fail: %s", type(error).__name__)
            continue
        if repeat:
            elapsed = 0.0
            await run_in_threadpool(_keep_uses, aggregator)


def _keep_uses(aggregator: Aggregator) -> None:
    """Store the days of tokens' last uses: seldom, so that no write shows when reports came."""
    try:
        aggregator.access.keep_uses()
    except Exception as error:  # the days are tried again, and nothing depends on them
        log.error("days of last use can't be stored: %s", type(error).__name__)
