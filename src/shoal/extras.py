"""Optional packages: the extra that brings each, and the one line that says how to install it.

The core simulates and compares. What only figures, the service or a cluster need is loaded when it
is used, and is an extra of the distribution; ``docs/install.md`` has the sizes.
"""

from importlib.util import find_spec

from shoal.errors import ShoalError

EXTRAS = {
    "figures": ("altair", "vl_convert", "jinja2", "markupsafe"),
    "service": (
        "fastapi", "uvicorn", "msgspec", "sqlalchemy", "alembic", "httpx", "prometheus_client",
        "python_multipart", "altair", "vl_convert", "jinja2",
    ),
    "cluster": ("ray",),
}  # fmt: skip
"""The packages that are looked for, by extra."""


class MissingPackageError(ShoalError, ImportError):
    """A package of an extra that is not installed, with the command that installs it."""


def missing(extra: str, *packages: str) -> str:
    """Return how to install an extra, "" where its packages, or these of them, are there.

    >>> missing("figures")
    ''
    """
    names = [name for name in packages or EXTRAS[extra] if find_spec(name) is None]
    return f"{names[0]} is missing: pip install 'shoal[{extra}]'." if names else ""


def need(extra: str, *packages: str) -> None:
    """Refuse to go on without the packages of an extra, or without these of them."""
    if message := missing(extra, *packages):
        raise MissingPackageError(message)
