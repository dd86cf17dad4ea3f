"""Upgrade a store to the newest schema; each role has its versions."""

from pathlib import Path
from typing import Literal

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from shoal.errors import InvalidInputError
from shoal.service.store.database import Database

StoreRole = Literal["aggregator", "learner"]

_SCRIPTS = Path(__file__).parent / "migrations"


def upgrade(database: Database, role: StoreRole, *, version: str = "head") -> None:
    """Bring the store to ``version`` in one transaction; make it where there is none."""
    database.create()
    with database.write() as connection:
        upgrade_within(connection, role, version=version)
    database.protect()


def upgrade_within(connection: Connection, role: StoreRole, *, version: str = "head") -> None:
    """Bring the store to ``version``; a database of another program or role is refused."""
    config = _config(role)
    current = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if current not in known and (current or inspect(connection).get_table_names()):
        raise InvalidInputError(
            f"database must be empty or the {role}'s store, of this release or an earlier one; "
            f"got one of version {current}."
        )
    if version not in known | {"head"}:
        raise InvalidInputError(f"version must be one that this release knows; got {version!r}.")
    config.attributes["connection"] = connection
    command.upgrade(config, version)


def current(database: Database) -> str | None:
    """Return the version that the store is at, None for an empty or missing one."""
    if not database.exists():
        return None
    with database.read() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def newest(role: StoreRole) -> str | None:
    """Return the version that this release of Shoal works with."""
    return ScriptDirectory.from_config(_config(role)).get_current_head()


def _config(role: StoreRole) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS))
    config.set_main_option("version_locations", str(_SCRIPTS / role))
    config.set_main_option("path_separator", "newline")
    return config
