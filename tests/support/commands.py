"""Commands as a shell would run them, in this process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from shoal.cli.main import main

PRICE = [
    "price", "--rounds", "40", "--min-group-size", "2,5", "--runs", "2", "--workers", "1",
]  # fmt: skip
"""A price that takes little time; what is priced is to be added."""


def run(*arguments: str) -> Result:
    """Run ``shoal`` with these arguments."""
    return CliRunner().invoke(main, list(arguments))
