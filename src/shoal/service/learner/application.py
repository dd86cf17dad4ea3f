"""The learner's HTTP interface: health, readiness and metrics. It takes no commands."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Response
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from shoal.service.learner.service import Learner


def create_app(learner: Learner, stopped: threading.Event) -> FastAPI:
    """Make the learner's application; the learner works in a thread until it is ``stopped``."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # A daemon: a sync that waits for work must not hold up the end.
        threading.Thread(target=learner.work_until, args=(stopped,), daemon=True).start()
        yield
        stopped.set()

    app = FastAPI(
        title="Shoal learner", version="1", lifespan=lifespan, docs_url=None, redoc_url=None
    )
    registry = CollectorRegistry()
    rounds = Gauge("shoal_learnt_rounds", "Rounds learnt, over all campaigns.", registry=registry)
    rounds.set_function(lambda: sum(run.learnt for run in list(learner.runs.values())))
    touch = Gauge("shoal_learner_in_touch", "Whether all goes well.", registry=registry)
    touch.set_function(lambda: float(learner.connected))
    damaged = Gauge(
        "shoal_quarantined_campaigns", "Campaigns whose state is damaged.", registry=registry
    )
    damaged.set_function(lambda: len(learner.quarantined))

    @app.get("/health")
    def health() -> dict[str, bool]:
        """Answer while the process is alive."""
        return {"ok": True}

    @app.get("/ready")
    def ready(response: Response) -> dict[str, bool]:
        """Check whether the store takes writes and the aggregator can be reached."""
        ok = learner.connected and learner.database.writable()
        response.status_code = 200 if ok else 503
        return {"ok": ok}

    @app.get("/metrics", response_class=Response)
    def metrics() -> Response:
        """Read Prometheus metrics."""
        return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return app
