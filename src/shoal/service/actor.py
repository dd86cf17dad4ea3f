"""Who acts: the name of the token behind a request, for the audit log."""

from contextvars import ContextVar

CONSOLE, SERVICE = "(console)", "(service)"  # no token can have such a name

ACTOR: ContextVar[str] = ContextVar("actor", default=SERVICE)
"""Set once for each request, where its token is checked."""
