"""The dashboard's routes, and what is prepared before the first page."""

from __future__ import annotations

import threading

from fastapi import FastAPI

from shoal.service.dashboard import (
    arms,
    assets,
    charts,
    login,
    new_campaign,
    operations,
    progress,
    tokens,
    views,
)
from shoal.service.dashboard.sessions import LoginAttempts

PAGES = (login, views, new_campaign, operations, arms, tokens, assets)


def install(app: FastAPI) -> None:
    """Add the pages, their files and the route that updates them."""
    app.state.login_attempts = LoginAttempts()
    for module in (progress, *PAGES):
        app.include_router(module.router)


def warm_up() -> None:
    """Prepare in a thread what the first page would wait for."""

    def work() -> None:
        charts.specs([])
        assets.asset(assets.CHARTS)

    threading.Thread(target=work, name="charts", daemon=True).start()
