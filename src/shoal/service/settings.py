"""Settings: a TOML file, then the environment, each naming its fields; anything else is refused.

``data`` and the tables ``[aggregator]`` and ``[learner]`` in the file are ``SHOAL_DATA``,
``SHOAL_AGGREGATOR_PORT``, ``SHOAL_LEARNER_DATABASE`` and so on in the environment.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import URL

from shoal.errors import InvalidInputError, UnknownNameError


@dataclass(frozen=True, kw_only=True)
class AggregatorSettings:
    """What the aggregator is told; ``database`` and ``key_file`` default to the data folder."""

    database: str = ""
    key_file: str = ""
    host: str = "127.0.0.1"
    port: int = 8000
    min_group_size_floor: int = 5
    max_body_bytes: int = 16 * 2**20
    body_seconds: int = 20

    @property
    def address(self) -> str:
        """Return where it answers."""
        host = f"[{self.host}]" if ":" in self.host else self.host  # IPv6
        return f"http://{host}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """What the learner is told; it reaches the aggregator over HTTP and in no other way."""

    database: str = ""
    aggregator: str = "http://127.0.0.1:8000"
    token: str = field(default="", repr=False)
    host: str = "127.0.0.1"
    port: int = 8001


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a machine; a role reads its own part only."""

    data: Path = Path("shoal-data")
    aggregator: AggregatorSettings = field(default_factory=AggregatorSettings)
    learner: LearnerSettings = field(default_factory=LearnerSettings)

    @property
    def aggregator_database(self) -> str:
        """Return the address of the aggregator's store."""
        return self.aggregator.database or _sqlite(self.data / "aggregator.db")

    @property
    def learner_database(self) -> str:
        """Return the address of the learner's store."""
        return self.learner.database or _sqlite(self.data / "learner.db")

    @property
    def key_file(self) -> Path:
        """Return the file of the key that blinds sums at rest."""
        return Path(self.aggregator.key_file or self.data / "aggregator.key")

    @property
    def secrets(self) -> Path:
        """Return the folder of the open rounds' secrets, beside the key."""
        return self.key_file.with_name(f"{self.key_file.name}.rounds")


def _sqlite(file: Path) -> str:
    return URL.create("sqlite", database=str(file)).render_as_string()


def environment_of(settings: Settings, part: Literal["aggregator", "learner"]) -> dict[str, str]:
    """Return one role's settings as its environment, with nothing about the other's.

    Examples
    --------
    >>> environment_of(Settings(), "learner")["SHOAL_LEARNER_DATABASE"]
    'sqlite:///shoal-data/learner.db'
    """
    own: AggregatorSettings | LearnerSettings
    if part == "aggregator":
        own = replace(
            settings.aggregator,
            database=settings.aggregator_database,
            key_file=str(settings.key_file),
        )
    else:
        own = replace(settings.learner, database=settings.learner_database)
    prefix = f"SHOAL_{part.upper()}_"
    return {prefix + item.name.upper(): str(getattr(own, item.name)) for item in fields(own)}


def load_settings(environment: Mapping[str, str], *, file: Path | None = None) -> Settings:
    """Read settings; the environment wins over the file.

    Examples
    --------
    >>> load_settings({"SHOAL_AGGREGATOR_PORT": "9000"}).aggregator.port
    9000
    >>> load_settings({"SHOAL_LEARNER_PORT": "many"})
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: learner.port must be a whole number of at least 0; got 'many'.
    """
    given = _read_file(file) if file is not None else {}
    for name in given:
        if name not in ("data", "aggregator", "learner"):
            raise UnknownNameError("setting", name, ["data", "aggregator", "learner"])
    data = environment.get("SHOAL_DATA") or given.get("data") or Settings.data
    return Settings(
        data=Path(data),
        aggregator=AggregatorSettings(
            **_part("aggregator", AggregatorSettings, given, environment)
        ),
        learner=LearnerSettings(**_part("learner", LearnerSettings, given, environment)),
    )


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InvalidInputError(f"config must be a readable TOML file; {file}: {error}.") from error


def _part(
    part: str,
    kind: type[AggregatorSettings] | type[LearnerSettings],
    given: Mapping[str, Any],
    environment: Mapping[str, str],
) -> dict[str, Any]:
    known = {item.name: type(item.default) for item in fields(kind)}
    prefix = f"SHOAL_{part.upper()}_"
    for name in environment:
        if name.startswith(prefix) and name.removeprefix(prefix).lower() not in known:
            raise UnknownNameError("setting", name, [prefix + item.upper() for item in known])
    table = given.get(part, {})
    for name in table:
        if name not in known:
            raise UnknownNameError(f"setting of {part}", name, known)
    read: dict[str, Any] = {}
    for name, wanted in known.items():
        value = environment.get(prefix + name.upper(), table.get(name))
        if value is not None:
            read[name] = _number(f"{part}.{name}", value) if wanted is int else str(value)
    return read


def _number(name: str, value: Any) -> int:
    if isinstance(value, bool) or not str(value).isdecimal():
        raise InvalidInputError(f"{name} must be a whole number of at least 0; got {value!r}.")
    return int(value)
