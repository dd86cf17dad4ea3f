"""Health, readiness, metrics and tokens."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from shoal.service.aggregator.tokens import Role
from shoal.service.campaign import Frozen
from shoal.service.web.access import Name, Service, TokenFirst, allow
from shoal.service.web.metrics import MEDIA_TYPE, Metrics

router = APIRouter(route_class=TokenFirst)


class Status(Frozen):
    """Whether all is well."""

    ok: bool


class Roles(Frozen):
    """The role of each token, by the token's name."""

    tokens: dict[str, Role]


class Wanted(Frozen):
    """The role that a new token is bound to."""

    role: Role


class Token(Frozen):
    """A token, shown this once."""

    name: str
    role: Role
    token: str


@router.get("/health", tags=["status"])
def health() -> Status:
    """Tell that the process answers."""
    return Status(ok=True)


@router.get("/ready", tags=["status"], responses={503: {"model": Status}})
def ready(aggregator: Service, response: Response) -> Status:
    """Tell whether the database takes writes and schedules are kept."""
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
    found: Metrics = request.app.state.metrics
    return Response(found.text(), headers={"Content-Type": MEDIA_TYPE})


@router.get("/v1/tokens", tags=["tokens"], dependencies=[allow("operator")])
def list_tokens(aggregator: Service) -> Roles:
    """List tokens by name and role."""
    return Roles(tokens=aggregator.access.roles())


@router.put("/v1/tokens/{name}", tags=["tokens"], dependencies=[allow("operator")])
def issue_token(name: Name, wanted: Wanted, aggregator: Service) -> Token:
    """Make a token, in place of any of that name; the answer is the only time it is shown."""
    return Token(name=name, role=wanted.role, token=aggregator.access.issue(name, wanted.role))


@router.delete(
    "/v1/tokens/{name}", tags=["tokens"], dependencies=[allow("operator")], status_code=204
)
def revoke_token(name: Name, aggregator: Service) -> None:
    """Revoke a token, at once; a repeat changes nothing."""
    aggregator.access.revoke(name)
