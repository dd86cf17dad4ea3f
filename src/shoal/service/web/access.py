"""Who may call a route: the token's role decides, and each route names its roles."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Path, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from shoal.service.aggregator import Aggregator
from shoal.service.campaign import NAME, USER
from shoal.service.problems import FORBIDDEN, UNAUTHENTICATED, ProblemError
from shoal.wire import Role

_bearer = HTTPBearer(auto_error=False, description="A token as printed by shoal serve.")

Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


async def service(request: Request) -> Aggregator:
    """Return the aggregator that this application serves."""
    aggregator: Aggregator = request.app.state.aggregator
    return aggregator


Service = Annotated[Aggregator, Depends(service)]
Name = Annotated[str, Path(pattern=NAME, description="A name of your own making.")]
User = Annotated[str, Path(pattern=USER)]
Number = Annotated[int, Path(ge=1, le=2**31 - 1, description="Rounds count from 1.")]


def allow(*roles: Role) -> Any:
    """Return a dependency that admits these roles; its value is the caller's role."""

    async def check(aggregator: Service, credentials: Credentials) -> Role:
        role = aggregator.access.role_of(credentials.credentials) if credentials else None
        if role is None:
            raise ProblemError(UNAUTHENTICATED)
        if role not in roles:
            raise ProblemError(FORBIDDEN)
        return role

    return Depends(check)


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
            return await handler(request)

        return check_token if self.body_field else handler
