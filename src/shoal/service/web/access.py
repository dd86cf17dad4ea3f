"""Who may call a route: the token's role and campaigns decide, and each route names its roles."""

import re
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Path, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BeforeValidator, Field

from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.audit_log import ACTOR
from shoal.service.aggregator.tokens import Holder
from shoal.service.campaign import NAME, USER
from shoal.service.problems import FORBIDDEN, UNAUTHENTICATED, WRONG_CAMPAIGN, ProblemError
from shoal.service.web.strict_json import StrictRequest
from shoal.wire import Role

_bearer = HTTPBearer(
    auto_error=False, description="A token of tokens.env, or one that an admin has created."
)

Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


async def service(request: Request) -> Aggregator:
    """Return the aggregator that this application serves."""
    aggregator: Aggregator = request.app.state.aggregator
    return aggregator


Service = Annotated[Aggregator, Depends(service)]
Name = Annotated[str, Path(pattern=NAME, description="A name of your own making.")]
User = Annotated[str, Path(pattern=USER)]


def _whole_number(text: str) -> str:
    """Refuse what Python would read as a number too: each round has one address."""
    if not re.fullmatch(r"0|[1-9][0-9]*", text, re.ASCII):
        raise ValueError(f"must be a whole number in digits; got {text[:40]!r}")
    return text


Number = Annotated[
    int,
    Field(ge=1, le=2**31 - 1),
    BeforeValidator(_whole_number),
    Path(description="Rounds count from 1."),
]


def allow(*roles: Role) -> Any:
    """Return a dependency that admits these roles; its value is the caller's token.

    A route about a campaign names it ``{name}`` and admits its tokens only, whether there is such
    a campaign or not.
    """

    async def check(request: Request, aggregator: Service, credentials: Credentials) -> Holder:
        holder = aggregator.access.holder(credentials.credentials) if credentials else None
        if holder is None:
            raise ProblemError(UNAUTHENTICATED)
        if holder.role not in roles:
            rule = f"It must be {' or '.join(roles)}; got {holder.role}."
            raise ProblemError(FORBIDDEN, rule)
        require_campaign(request, holder)
        ACTOR.set(holder.name)
        return holder

    return Depends(check)


def bearer_token(request: Request) -> str:
    """Return the token of a request that was admitted."""
    return request.headers["Authorization"].partition(" ")[2]


def require_campaign(request: Request, holder: Holder) -> None:
    """Refuse a token of other campaigns than the one that an address is about."""
    campaign = request.path_params.get("name")
    if campaign is not None and not holder.covers(campaign):
        raise ProblemError(WRONG_CAMPAIGN)


class TokenFirst(APIRoute):
    """A route that reads no body from a caller without a valid token."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with the check before it."""
        handler = super().get_route_handler()

        async def check_token(request: Request) -> Response:
            credentials = await _bearer(request)
            aggregator = await service(request)
            if not (credentials and aggregator.access.role_of(credentials.credentials)):
                raise ProblemError(UNAUTHENTICATED)
            return await handler(StrictRequest(request.scope, request.receive))

        return check_token if self.body_field else handler
