"""The dashboard as a part of the aggregator's application."""

from __future__ import annotations

import threading

from fastapi import FastAPI

from shoal.service.dashboard import acting, arms, assets, creating, live, login, tokens, watching
from shoal.service.dashboard.sessions import Attempts

PAGES = (login, watching, creating, acting, arms, tokens, assets)


def install(app: FastAPI) -> None:
    """Add the pages, their files and the route that keeps them fresh."""
    app.state.attempts = Attempts()
    for part in (live, *PAGES):
        app.include_router(part.router)


def warm_up() -> None:
    """Prepare in a thread what the first page would wait for."""

    def work() -> None:
        from shoal.service.dashboard import charts

        charts.specs([])
        assets.asset(assets.CHARTS)

    threading.Thread(target=work, name="charts", daemon=True).start()
