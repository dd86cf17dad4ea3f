"""Health, readiness, metrics and tokens."""

from typing import Annotated, cast

from fastapi import APIRouter, Body, Request, Response

from shoal import wire
from shoal.service.api.schemas import Checked
from shoal.service.web.access import Name, Service, TokenFirst, allow
from shoal.service.web.metrics import METRICS_TYPE, Metrics
from shoal.wire import IssuedToken, Role, Status, TokenRoles

router = APIRouter(route_class=TokenFirst)


TokenBody = Annotated[wire.TokenRequest, Body(), Checked(role=Role)]


@router.get("/health", tags=["status"])
def health() -> Status:
    """Answer while the process is alive."""
    return Status(ok=True)


@router.get("/ready", tags=["status"], responses={503: {"model": Status}})
def ready(aggregator: Service, response: Response) -> Status:
    """Check whether the database takes writes and schedules are kept."""
    ok = aggregator.on_schedule and aggregator.database.writable()
    response.status_code = 200 if ok else 503
    return Status(ok=ok)


@router.get(
    "/metrics",
    tags=["status"],
    dependencies=[allow("operator")],
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
)
def metrics(request: Request) -> Response:
    """Read Prometheus metrics."""
    collected: Metrics = request.app.state.metrics
    return Response(collected.text(), headers={"Content-Type": METRICS_TYPE})


@router.get("/v1/tokens", tags=["tokens"], dependencies=[allow("operator")])
def list_tokens(aggregator: Service) -> TokenRoles:
    """List tokens by name and role."""
    return TokenRoles(tokens=aggregator.access.roles())


@router.put("/v1/tokens/{name}", tags=["tokens"], dependencies=[allow("operator")])
def issue_token(name: Name, request: TokenBody, aggregator: Service) -> IssuedToken:
    """Make a token, in place of any of that name; the answer is the only time it is shown."""
    role = cast("Role", request.role)
    return IssuedToken(name, role, aggregator.access.issue(name, role))


@router.delete(
    "/v1/tokens/{name}", tags=["tokens"], dependencies=[allow("operator")], status_code=204
)
def revoke_token(name: Name, aggregator: Service) -> None:
    """Revoke a token, at once; a repeat changes nothing."""
    aggregator.access.revoke(name)
