"""What ``shoal doctor`` checks: settings, stores, clocks, and every stored plan and release.

It reads the stores as their operator, and changes nothing: what is missing stays missing.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
from sqlalchemy import Connection, or_, select, text

from shoal.errors import ShoalError
from shoal.service.aggregator import campaigns
from shoal.service.aggregator.keys import fits, read_key
from shoal.service.audit import audit
from shoal.service.clock import system_clock
from shoal.service.settings import Settings
from shoal.service.store import Database
from shoal.service.store import aggregator as store
from shoal.service.store.migrate import Role, current, newest

MOST_SKEW = 2_000  # milliseconds


@dataclass(frozen=True)
class Finding:
    """One check: what was looked at and, where it failed, what is wrong."""

    check: str
    fault: str = ""


def examine(settings: Settings, role: Role) -> Iterator[Finding]:
    """Check everything about one role on this machine."""
    if role == "aggregator":
        yield from _key(settings)
        yield from _floor(settings)
    else:
        yield from _clocks(settings)
    url = settings.aggregator_database if role == "aggregator" else settings.learner_database
    database = Database(url, read_only=True)
    try:
        yield from _store(database, role, settings)
    finally:
        database.close()


def _key(settings: Settings) -> Iterator[Finding]:
    check = "the key is there and nobody else can read it"
    if not settings.key_file.is_file():
        yield Finding(check, f"{settings.key_file} is missing")
    else:
        yield Finding(check, _open_to_others([settings.key_file]))


def _floor(settings: Settings) -> Iterator[Finding]:
    floor = settings.aggregator.min_group_size_floor
    fault = "" if floor >= 2 else f"min_group_size_floor={floor} allows totals of one user"
    yield Finding("the floor for C is at least 2", fault)


def _open_to_others(files: list[Path]) -> str:
    exposed = [f for f in files if f.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)]
    return f"{exposed[0]} can be read by others" if exposed else ""


def _clocks(settings: Settings) -> Iterator[Finding]:
    """Compare with the aggregator's clock, which its answers carry to the second."""
    check = "this machine's clock and the aggregator's agree"
    try:
        answer = httpx.get(f"{settings.learner.aggregator}/health", timeout=5.0)
        told = parsedate_to_datetime(answer.headers["date"]).timestamp()
    except (httpx.HTTPError, httpx.InvalidURL, KeyError, ValueError):
        return  # it is not running, or not reached from here: there is nothing to compare with
    skew = abs(round(1000 * told) + 500 - system_clock())
    yield Finding(check, "" if skew <= MOST_SKEW else f"they differ by about {skew} ms")


def _store(database: Database, role: Role, settings: Settings) -> Iterator[Finding]:
    check = f"the {role}'s store answers"
    if not database.exists():
        yield Finding(check, f"{database.file} is missing")
        return
    if database.file is not None:
        yield Finding(f"nobody else can read the {role}'s store", _open_to_others(database.files()))
    if not database.alive():
        yield Finding(check, "the database can't be reached")
        return
    yield Finding(check)
    found, wanted = current(database), newest(role)
    fault = "" if found == wanted else f"it is at {found}, this release needs {wanted}"
    yield Finding(f"the {role}'s schema is up to date", fault)
    yield _clock(database)
    if role == "aggregator" and not fault:
        with database.read() as connection:
            yield _fit(connection, settings)
            yield _times(connection)
        yield from _campaigns(database, settings.aggregator.min_group_size_floor)


def _fit(connection: Connection, settings: Settings) -> Finding:
    check = "the key is the store's"
    try:
        key = read_key(settings.key_file)
    except ShoalError as error:
        return Finding(check, str(error))
    fault = "" if key is None or fits(connection, key) else "the store was filled with another key"
    return Finding(check, fault)


def _times(connection: Connection) -> Finding:
    known, now = store.rounds.c, system_clock() + MOST_SKEW
    ahead = or_(known.wanted_at > now, known.opened_at > now, known.closed_at > now)
    found = select(known.campaign, known.number).where(ahead).limit(1)
    row = connection.execute(found).one_or_none()
    fault = f"round {row.number} of campaign {row.campaign} has one" if row else ""
    return Finding("no round has a time in the future", fault)


def _clock(database: Database) -> Finding:
    statement = {
        "sqlite": "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
        "postgresql": "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
    }[database.backend]
    with database.read() as connection:
        skew = abs(int(connection.scalar(text(statement)) or 0) - system_clock())
    fault = "" if skew <= MOST_SKEW else f"they differ by {skew} ms"
    return Finding("this machine's clock and the database's agree", fault)


def _campaigns(database: Database, floor: int) -> Iterator[Finding]:
    with database.read() as connection:
        found = {name: campaigns.load(connection, name)[0] for name in campaigns.names(connection)}
    for name, campaign in found.items():
        checked = audit(database, name)
        faults = [fault for rule in checked.faults.values() for fault in rule]
        if campaign.min_group_size < floor:
            faults.insert(0, f"C is {campaign.min_group_size}, below the floor of {floor}")
        noise = (
            f"noise of epsilon {campaign.noise.epsilon:g} a round" if campaign.noise else "no noise"
        )
        check = f"campaign {name}: {checked.rounds} rounds are anonymous, with {noise}"
        yield Finding(check, "; ".join(faults[:3]))
