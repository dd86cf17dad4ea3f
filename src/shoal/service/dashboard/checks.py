"""The checks of the anonymity page: run by a schedule or by hand, remembered with their time."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, func, insert, select

from shoal.service.aggregator import Aggregator
from shoal.service.audit import RULES, Rule, audit
from shoal.service.store import aggregator as store

MOST_FAULTS = 3  # that are told of a rule


@dataclass(frozen=True)
class Checked:
    """A rule and what its last check found."""

    rule: Rule
    ran_at: int | None
    rounds: int
    fault: str


def run(aggregator: Aggregator, name: str) -> None:
    """Check a campaign against every rule, and remember what was found and when."""
    aggregator.directory.campaign(name)
    found = audit(aggregator.database, name)
    now, table = aggregator.clock(), store.checks
    rows = [
        {
            "campaign": name,
            "rule": rule,
            "ran_at": now,
            "rounds": found.rounds,
            "fault": "; ".join(faults[:MOST_FAULTS]),
        }
        for rule, faults in found.faults.items()
    ]
    with aggregator.database.write() as connection:
        connection.execute(delete(table).where(table.c.campaign == name))
        connection.execute(insert(table), rows)


def run_due(aggregator: Aggregator, *, again: bool = True) -> None:
    """Check every campaign in which a round has ended since it was last checked.

    If not ``again``, only those that never were.
    """
    table = store.checks
    with aggregator.database.read() as connection:
        query = select(table.c.campaign, func.min(table.c.ran_at)).group_by(table.c.campaign)
        ran = {name: int(at) for name, at in connection.execute(query)}
    for name in aggregator.directory.names():
        if name in ran and not again:
            continue
        last = aggregator.rounds.latest(name)
        # A round is asked for after the one before has ended.
        ended = (last.closed_at or (last.number > 1 and last.wanted_at)) if last else None
        if ended and ended >= ran.get(name, 0):
            run(aggregator, name)


def latest(aggregator: Aggregator, name: str) -> list[Checked]:
    """Return every rule with its last check."""
    table = store.checks
    with aggregator.database.read() as connection:
        rows = connection.execute(select(table).where(table.c.campaign == name)).all()
    found = {row.rule: row for row in rows}
    return [
        Checked(rule, found[key].ran_at, found[key].rounds, found[key].fault)
        if key in found
        else Checked(rule, None, 0, "")
        for key, rule in RULES.items()
    ]
