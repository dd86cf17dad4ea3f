"""What ``shoal doctor`` checks: settings, stores, clocks, and every stored plan and release.

It reads the stores as their operator, and changes nothing: what is missing stays missing.
"""

import stat
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
from sqlalchemy import Connection, or_, select, text
from sqlalchemy.exc import SQLAlchemyError

from shoal.errors import ShoalError
from shoal.service.aggregator import audit_log, campaigns, rounds
from shoal.service.aggregator.group_sums import DAMAGED, DamagedSumsError, read_checked
from shoal.service.aggregator.keys import (
    COPIED,
    KEY_BYTES,
    describe_lost,
    find_lost,
    fits,
    is_copy,
    read_key,
)
from shoal.service.aggregator.witness import (
    WITNESS_UNSET,
    read_statement,
    was_witnessed,
    why_unwritable,
)
from shoal.service.aggregator.witness import check as check_witness
from shoal.service.audit import audit
from shoal.service.learner.run import DamagedStateError, Records
from shoal.service.settings import Settings
from shoal.service.store import Database, system_clock
from shoal.service.store import aggregator as store
from shoal.service.store.database import reason_of
from shoal.service.store.migrate import StoreRole, current, newest

MAX_SKEW = 2_000  # milliseconds
RETRY_SECONDS = 1.5  # seconds until a difference is measured again


@dataclass(frozen=True)
class Finding:
    """One check and, where it failed, what is wrong."""

    check: str
    fault: str = ""


def examine(settings: Settings, role: StoreRole) -> Iterator[Finding]:
    """Check everything about one role on this machine."""
    if role == "aggregator":
        yield _key_file(settings.key_file)
        floor = settings.aggregator.min_group_size_floor
        fault = "" if floor >= 2 else f"min_group_size_floor={floor} allows totals of one user"
        yield Finding("the floor for C is at least 2", fault)
    else:
        yield from _aggregator_clock(settings.learner.aggregator)
    with closing(Database(settings.database(role), read_only=True)) as database:
        yield from _store(database, role, settings)


def _key_file(file: Path) -> Finding:
    fault = _open_to_others([file]) if file.is_file() else f"{file} is missing"
    return Finding("the key is there and nobody else can read it", fault)


def _open_to_others(files: list[Path]) -> str:
    exposed = [f for f in files if f.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)]
    return f"{exposed[0]} can be read by others" if exposed else ""


def _aggregator_clock(address: str) -> Iterator[Finding]:
    """Compare with the aggregator's clock.

    A server that stood still answers with the time from before: a difference is measured again.
    """
    skew = _skew(address)
    if skew is not None and skew > MAX_SKEW:
        time.sleep(RETRY_SECONDS)
        skew = _skew(address)
    if skew is None:
        return  # it is not running, or not reached from here: there is nothing to compare with
    fault = "" if skew <= MAX_SKEW else f"they differ by about {skew} ms"
    yield Finding("this machine's clock and the aggregator's agree", fault)


def _skew(address: str) -> int | None:
    """Return what the time of the request can't explain; answers carry a time to the second."""
    before = system_clock()
    try:
        answer = httpx.get(f"{address}/health", timeout=5.0)
        date = round(1000 * parsedate_to_datetime(answer.headers["date"]).timestamp())
    except (httpx.HTTPError, httpx.InvalidURL, KeyError, ValueError):
        return None
    return max(0, date - system_clock(), before - (date + 1000))


def _store(database: Database, role: StoreRole, settings: Settings) -> Iterator[Finding]:
    check = f"the {role}'s store answers"
    if not database.exists():
        yield Finding(check, f"{database.file} is missing")
        return
    if database.file is not None:
        yield Finding(f"nobody else can read the {role}'s store", _open_to_others(database.files()))
    try:
        version, needed = current(database), newest(role)
    except SQLAlchemyError as error:
        yield Finding(check, reason_of(error))
        return
    yield Finding(check)
    fault = "" if version == needed else f"it is at {version}, this release needs {needed}"
    yield Finding(f"the {role}'s schema is up to date", fault)
    yield _database_clock(database)
    if role == "learner" and not fault:
        yield from _learner_states(database)
    if role == "aggregator" and not fault:
        with database.read() as connection:
            if settings.key_file.is_file():
                yield _key_fits(connection, settings)
            yield _no_future_times(connection)
            yield Finding("the audit log is whole", "; ".join(audit_log.check(connection)))
            if settings.aggregator.witness:
                yield from _witness(connection, Path(settings.aggregator.witness).resolve())
            elif was_witnessed(connection):
                yield Finding("the service's witness is set", WITNESS_UNSET)
        yield from _campaigns(database, settings)


def _witness(connection: Connection, file: Path) -> Iterator[Finding]:
    """Check that the witness is there, unless it is to be made yet, and what it says."""
    check = "the witness is there and can be written"
    try:
        statement = read_statement(file)
    except ShoalError as error:
        yield Finding(check, str(error))
        return
    fault = why_unwritable(file)
    if not fault and not file.is_file() and was_witnessed(connection):
        fault = (
            f"the service ran with a witness before, and there is no {file}: is its volume "
            "mounted? A start would make a new one, which knows of no round"
        )
    yield Finding(check, fault)
    if not fault:
        fault = check_witness(connection, statement)
        yield Finding("the audit log goes on from its witness", fault)


def _learner_states(database: Database) -> Iterator[Finding]:
    records = Records(database)
    for name in records.names():
        try:
            records.load(name)
            fault = ""
        except DamagedStateError as error:
            fault = f"{error}; shoal relearn {name}"
        yield Finding(f"campaign {name}: the learner's state can be read", fault)


def _key_fits(connection: Connection, settings: Settings) -> Finding:
    check = "the key is the one that the store was filled with"
    try:
        key = read_key(settings.key_file)
    except ShoalError as error:
        return Finding(check, str(error))
    fault = "" if key is None or fits(connection, key) else "the store was filled with another key"
    if not settings.aggregator.witness and is_copy(connection, settings.key_file, key):
        fault = COPIED
    return Finding(check, fault)


def _no_future_times(connection: Connection) -> Finding:
    columns, now = store.rounds.c, system_clock() + MAX_SKEW
    ahead = or_(columns.wanted_at > now, columns.opened_at > now, columns.closed_at > now)
    query = select(columns.campaign, columns.number).where(ahead).limit(1)
    row = connection.execute(query).one_or_none()
    fault = f"round {row.number} of campaign {row.campaign} has one" if row else ""
    return Finding("no round has a time in the future", fault)


def _database_clock(database: Database) -> Finding:
    with database.read() as connection:
        milliseconds = connection.scalar(text(database.dialect.clock)) or 0
        skew = abs(int(milliseconds) - system_clock())
    fault = "" if skew <= MAX_SKEW else f"they differ by {skew} ms"
    return Finding("this machine's clock and the database's agree", fault)


def _campaigns(database: Database, settings: Settings) -> Iterator[Finding]:
    floor = settings.aggregator.min_group_size_floor
    with database.read() as connection:
        names = campaigns.names(connection)
        by_name = {name: campaigns.load(connection, name)[0] for name in names}
    for name, campaign in by_name.items():
        result = audit(database, name)
        faults = [fault for rule in result.faults.values() for fault in rule]
        if campaign.min_group_size < floor:
            fault = f"C is {campaign.min_group_size}, below the floor of {floor}"
            yield Finding(f"campaign {name}: C is at least the floor", fault)
        noise = "no noise"
        if campaign.noise:
            noise = f"noise of epsilon {campaign.noise.epsilon:g} a round"
        checked = "1 round is" if result.rounds == 1 else f"{result.rounds:,} rounds are"
        if "groups" not in result.faults:  # archived, without plans
            checked = checked.replace("round", "archived round") + " by totals alone"
        check = f"campaign {name}: {checked} anonymous, with {noise}"
        yield Finding(check, "; ".join(faults[:3]))
        yield from _open_sums(database, name, settings.secrets)


def _open_sums(database: Database, name: str, secrets: Path) -> Iterator[Finding]:
    """Check that the sums of an open round are of those who reported, and have their secret."""
    with database.read() as connection:
        lost = find_lost(connection, secrets, marked=True)
    with database.read() as connection:  # a round that was released meanwhile is not open here
        last = rounds.latest(connection, name)
        plan = rounds.load_plan(connection, last.id) if last and last.state == rounds.OPEN else None
        if last is None or plan is None:
            return
        fault = ""
        try:
            read_checked(connection, last.id, plan.groups, bytes(KEY_BYTES))
        except DamagedSumsError:
            fault = f"round {last.number} can't be released: {DAMAGED}; it will be abandoned"
        if last.id in lost and not fault:
            fault = describe_lost(connection, secrets, [last.id])
        yield Finding(f"campaign {name}: the sums of its open round are whole", fault)
