"""Settings: a TOML file, then the environment, each naming its fields; anything else is refused.

``data`` and the tables ``[aggregator]`` and ``[learner]`` in the file are ``SHOAL_DATA``,
``SHOAL_AGGREGATOR_PORT``, ``SHOAL_LEARNER_DATABASE`` and so on in the environment.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL

from shoal.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from shoal.service.store.migrate import StoreRole

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # to listen on, and how this machine reaches it


def _check_log_format(role: StoreRole, name: str) -> None:
    if name not in ("text", "json"):
        raise InvalidInputError(f"{role}.log_format must be text or json; got {name!r}.")


@dataclass(frozen=True, kw_only=True)
class AggregatorSettings:
    """The aggregator's settings; ``database`` and ``key_file`` default to the data folder."""

    database: str = ""
    key_file: str = ""
    host: str = "127.0.0.1"
    port: int = 8000
    min_group_size_floor: int = 5
    max_body_bytes: int = 16 * 2**20
    body_seconds: int = 20
    token_file: str = ""
    witness: str = ""
    trusted_proxies: str = "127.0.0.1,::1"
    secure_cookies: str = "auto"
    learner_token_file: str = ""
    log_format: str = "text"

    def __post_init__(self) -> None:
        for proxy in self.proxies:
            try:
                ip_network(proxy)
            except ValueError:
                raise InvalidInputError(
                    "aggregator.trusted_proxies must be addresses or networks, separated by "
                    f"commas; got {proxy!r}."
                ) from None
        _check_log_format("aggregator", self.log_format)
        if self.min_group_size_floor < 2:
            raise InvalidInputError(
                "aggregator.min_group_size_floor must be at least 2; "
                f"got {self.min_group_size_floor}."
            )
        if self.secure_cookies not in ("auto", "always"):
            raise InvalidInputError(
                f"aggregator.secure_cookies must be auto or always; got {self.secure_cookies!r}."
            )

    @property
    def proxies(self) -> list[str]:
        """Return the addresses and networks that may say who asks, and how."""
        return [part.strip() for part in self.trusted_proxies.split(",") if part.strip()]

    @property
    def address(self) -> str:
        """Return where this machine reaches it."""
        host = EVERYWHERE.get(self.host, self.host)
        host = f"[{host}]" if ":" in host else host  # IPv6
        return f"http://{host}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """The learner's settings; it reaches the aggregator over HTTP and in no other way."""

    database: str = ""
    aggregator: str = "http://127.0.0.1:8000"
    token: str = field(default="", repr=False)
    host: str = "127.0.0.1"
    port: int = 8001
    token_file: str = ""
    log_format: str = "text"

    def __post_init__(self) -> None:
        _check_log_format("learner", self.log_format)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a machine; each role reads its part only."""

    data: Path = Path("shoal-data")
    aggregator: AggregatorSettings = field(default_factory=AggregatorSettings)
    learner: LearnerSettings = field(default_factory=LearnerSettings)

    def database(self, role: StoreRole) -> str:
        """Return the address of a role's store."""
        address = self.aggregator.database if role == "aggregator" else self.learner.database
        file = str(self.data / f"{role}.db")
        return address or URL.create("sqlite", database=file).render_as_string()

    @property
    def key_file(self) -> Path:
        """Return the file of the key that blinds sums at rest."""
        return Path(self.aggregator.key_file or self.data / "aggregator.key")

    @property
    def token_file(self) -> Path:
        """Return the file that the first start writes its tokens to."""
        return Path(self.aggregator.token_file or self.data / "tokens.env")

    @property
    def secrets(self) -> Path:
        """Return the folder of the open rounds' secrets, beside the key."""
        return self.key_file.with_name(f"{self.key_file.name}.rounds")


def environment_of(settings: Settings, role: StoreRole) -> dict[str, str]:
    """Return one role's settings as its environment, with nothing about the other's.

    >>> environment_of(Settings(), "learner")["SHOAL_LEARNER_DATABASE"]
    'sqlite:///shoal-data/learner.db'
    """
    values = asdict(settings.aggregator if role == "aggregator" else settings.learner)
    values["database"] = settings.database(role)
    if role == "aggregator":
        values["key_file"] = settings.key_file
        values["token_file"] = settings.token_file
    return {f"SHOAL_{role}_{name}".upper(): str(value) for name, value in values.items()}


def load_settings(environment: Mapping[str, str], *, file: Path | None = None) -> Settings:
    """Read settings; the environment wins over the file.

    >>> load_settings({"SHOAL_AGGREGATOR_PORT": "9000"}).aggregator.port
    9000
    >>> load_settings({"SHOAL_LEARNER_PORT": "many"})
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: learner.port must be a whole number of at least 0; got 'many'.
    """
    tables = _read_file(file) if file is not None else {}
    for name in tables:
        if name not in ("data", "aggregator", "learner"):
            raise UnknownNameError("setting", name, ["data", "aggregator", "learner"])
    aggregator = _read_role("aggregator", AggregatorSettings, tables, environment)
    learner = _read_role("learner", LearnerSettings, tables, environment)
    return Settings(
        data=Path(environment.get("SHOAL_DATA") or tables.get("data") or Settings.data),
        aggregator=AggregatorSettings(**aggregator),
        learner=LearnerSettings(**learner),
    )


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InvalidInputError(f"config must be a readable TOML file; {file}: {error}.") from error


def _read_role(
    role: StoreRole,
    kind: type[AggregatorSettings | LearnerSettings],
    tables: Mapping[str, Any],
    environment: Mapping[str, str],
) -> dict[str, Any]:
    types = {item.name: type(item.default) for item in fields(kind)}
    variables = {f"SHOAL_{role}_{name}".upper(): name for name in types}
    for name in environment:
        if name.startswith(f"SHOAL_{role.upper()}_") and name.upper() not in variables:
            raise UnknownNameError("setting", name, variables)
    table = tables.get(role, {})
    for name in table:
        if name not in types:
            raise UnknownNameError(f"setting of {role}", name, types)
    values = dict(table)
    values |= {name: environment[key] for key, name in variables.items() if key in environment}
    return {
        name: _number(f"{role}.{name}", value) if types[name] is int else str(value)
        for name, value in values.items()
    }


def _number(name: str, value: Any) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,18}", str(value)):
        raise InvalidInputError(f"{name} must be a whole number of at least 0; got {value!r}.")
    return int(value)
