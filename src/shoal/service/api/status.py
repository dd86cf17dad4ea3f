"""Health, readiness and metrics."""

from fastapi import APIRouter, Request, Response

from shoal.service.web.access import allow
from shoal.service.web.metrics import METRICS_TYPE, Metrics
from shoal.service.web.readiness import ReadinessCheck
from shoal.wire import Readiness, Status

router = APIRouter()


@router.get("/health", tags=["status"])
async def health() -> Status:
    """Answer while the process is alive."""
    return Status(ok=True)


@router.get("/ready", tags=["status"], responses={503: {"model": Readiness}})
async def ready(request: Request, response: Response) -> Readiness:
    """Check whether the store takes writes, schedules are kept and the learner is in touch."""
    check: ReadinessCheck = request.app.state.readiness
    readiness = await check.read()
    if not readiness.ok:
        response.status_code = 503
        response.headers["Retry-After"] = "1"
    return readiness


@router.get(
    "/metrics",
    tags=["status"],
    dependencies=[allow("operator", "monitor")],
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
)
def metrics(request: Request) -> Response:
    """Read Prometheus metrics."""
    collected: Metrics = request.app.state.metrics
    return Response(collected.text(), headers={"Content-Type": METRICS_TYPE})
