"""Bringing a store to the newest schema; each role has its own line of versions."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from shoal.service.store.database import Database

Role = Literal["aggregator", "learner"]

_SCRIPTS = Path(__file__).parent / "migrations"


def upgrade(database: Database, role: Role, *, version: str = "head") -> None:
    """Bring the store to ``version`` in one transaction; make it where there is none."""
    config = _config(role)
    database.create()
    with database.write() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, version)


def current(database: Database) -> str | None:
    """Return the version that the store is at, None for an empty or missing one."""
    if not database.exists():
        return None
    with database.read() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def newest(role: Role) -> str | None:
    """Return the version that this release of Shoal works with."""
    return ScriptDirectory.from_config(_config(role)).get_current_head()


def _config(role: Role) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS))
    config.set_main_option("version_locations", str(_SCRIPTS / role))
    config.set_main_option("path_separator", "newline")
    return config
