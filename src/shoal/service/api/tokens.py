"""Tokens, which an admin alone makes, and the audit log."""

from typing import Annotated, cast

from fastapi import APIRouter, Body, Path, Query
from pydantic import Field, StringConstraints

from shoal import wire
from shoal.service.aggregator import audit_log
from shoal.service.aggregator.tokens import Holder, scope_names
from shoal.service.api.schemas import Checked
from shoal.service.campaign import NAME
from shoal.service.problems import INVALID, ProblemError
from shoal.service.store import DAY, HOUR
from shoal.service.web.access import Service, TokenFirst, allow
from shoal.wire import (
    BOUND,
    EVERY_CAMPAIGN,
    UNBOUND,
    AuditPage,
    IssuedToken,
    Role,
    TokenList,
)

router = APIRouter(prefix="/v1", route_class=TokenFirst)

TokenName = Annotated[str, Path(alias="token", pattern=NAME, description="A name of your own.")]
Scope = Annotated[
    list[Annotated[str, StringConstraints(pattern=rf"{NAME}|^\*$")]],
    Field(min_length=1, max_length=1000, description='Campaigns; ["*"] is all of them.'),
]
TokenBody = Annotated[
    wire.TokenRequest,
    Body(),
    Checked(
        role=Role,
        campaigns=Scope | None,
        expires_days=Annotated[float, Field(gt=0, le=36_500)] | None,
        succeeds=Annotated[str, StringConstraints(pattern=NAME)] | None,
    ),
]
RotationBody = Annotated[
    wire.Rotation, Body(), Checked(grace_hours=Annotated[float, Field(ge=0, le=8760)])
]


@router.get("/tokens", tags=["tokens"])
def list_tokens(
    aggregator: Service, holder: Annotated[Holder, allow("admin", "operator")]
) -> TokenList:
    """List the tokens: who may do what, until when, and on which day each was last used.

    A token of some campaigns sees those of the same ones.
    """
    return TokenList(aggregator.access.records(holder.campaigns))


@router.put("/tokens/{token}", tags=["tokens"], dependencies=[allow("admin")])
def issue_token(name: TokenName, request: TokenBody, aggregator: Service) -> IssuedToken:
    """Make a token, in place of any of that name; the answer is the only time it is shown."""
    role, campaigns = cast("Role", request.role), request.campaigns
    if campaigns is None and role in BOUND:
        rule = f"campaigns must name the campaigns of a token of role {role}, or * for all."
        raise ProblemError(INVALID, rule)
    if role in UNBOUND and campaigns not in (None, [EVERY_CAMPAIGN]):
        got = f"got {', '.join(campaigns)[:40]!r}"
        raise ProblemError(
            INVALID, f"campaigns must be left out for a token of role {role}; {got}."
        )
    if request.succeeds is not None and role != "app":
        raise ProblemError(INVALID, "succeeds must be left out but for a token of role app.")
    days = request.expires_days
    expires_at = None if days is None else aggregator.clock() + round(days * DAY)
    scope = list(campaigns or [EVERY_CAMPAIGN])
    token = aggregator.access.issue(
        name, role, campaigns=scope, expires_at=expires_at, succeeds=request.succeeds
    )
    unknown = _unknown_campaigns(aggregator, scope)
    return IssuedToken(name, role, token, scope, expires_at, unknown)


@router.post("/tokens/{token}/rotate", tags=["tokens"], dependencies=[allow("admin")])
def rotate_token(name: TokenName, rotation: RotationBody, aggregator: Service) -> IssuedToken:
    """Give a token a new secret; the former one works for the grace beside it."""
    grace = round(rotation.grace_hours * HOUR)
    holder, token = aggregator.access.rotate(name, grace=grace)
    scope = scope_names(holder.campaigns)
    unknown = _unknown_campaigns(aggregator, scope)
    return IssuedToken(name, holder.role, token, scope, holder.expires_at, unknown)


def _unknown_campaigns(aggregator: Service, scope: list[str]) -> list[str]:
    return sorted({*scope} - {EVERY_CAMPAIGN, *aggregator.directory.names()})


@router.delete("/tokens/{token}", tags=["tokens"], dependencies=[allow("admin")], status_code=204)
def revoke_token(name: TokenName, aggregator: Service) -> None:
    """Revoke a token, at once; a repeat changes nothing."""
    aggregator.access.revoke(name)


@router.get("/audit", tags=["audit"])
def read_audit(
    aggregator: Service,
    holder: Annotated[Holder, allow("admin", "operator")],
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="The last entry read.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> AuditPage:
    """Read the audit log in order; a token of some campaigns reads what is about them."""
    with aggregator.database.read() as connection:
        entries = audit_log.read(
            connection, after=after, limit=limit + 1, campaigns=holder.campaigns
        )
    more = len(entries) > limit
    return AuditPage(entries[:limit], entries[limit - 1].number if more else None)
