"""Extras that may not be installed: the error names the exact command."""

from __future__ import annotations

from importlib.util import find_spec

from shoal.errors import ShoalError

SERVICE = (
    "fastapi", "uvicorn", "msgspec", "sqlalchemy", "alembic", "httpx", "prometheus_client",
    "jinja2", "python_multipart",
)  # fmt: skip


def need_service() -> None:
    """Refuse to go on without the service's packages."""
    missing = [name for name in SERVICE if find_spec(name) is None]
    if missing:
        raise ShoalError(f"{missing[0]} is missing: pip install 'shoal[service]'.")
