"""The checks of the anonymity page: run on a schedule or by hand, stored with their time."""

from dataclasses import dataclass

from sqlalchemy import delete, func, insert, select

from shoal.service.aggregator import Aggregator
from shoal.service.audit import RULES, Rule, audit
from shoal.service.dashboard.formatting import utc_time
from shoal.service.store import aggregator as store

MAX_FAULTS = 3  # that are stored of a rule


@dataclass(frozen=True)
class CheckedRule:
    """A rule and the result of its last check."""

    rule: Rule
    ran_at: int | None = None
    rounds: int = 0
    fault: str = ""


def run(aggregator: Aggregator, name: str) -> None:
    """Check a campaign against every rule that can be checked, and store the results."""
    aggregator.directory.campaign(name)
    result = audit(aggregator.database, name)
    table = store.checks
    check = {"campaign": name, "ran_at": aggregator.clock(), "rounds": result.rounds}
    rows = [
        check | {"rule": rule, "fault": "; ".join(faults[:MAX_FAULTS])}
        for rule, faults in result.faults.items()
    ]
    with aggregator.database.write() as connection:
        again = table.c.rule.in_(result.faults)
        connection.execute(delete(table).where(table.c.campaign == name, again))
        connection.execute(insert(table), rows)


def run_due(aggregator: Aggregator, *, repeat: bool = True) -> None:
    """Check every campaign in which a round has ended since it was last checked.

    If not ``repeat``, only those that were never checked.
    """
    table = store.checks
    with aggregator.database.read() as connection:
        query = select(table.c.campaign, func.min(table.c.ran_at)).group_by(table.c.campaign)
        times = {name: int(time) for name, time in connection.execute(query)}
    now = aggregator.clock()  # a check in the future, by a clock that was wrong, is none
    ran_at = {name: time for name, time in times.items() if time <= now}
    for name in aggregator.directory.names():
        if name in ran_at and not repeat:
            continue
        last = aggregator.rounds.latest(name)
        # A round is asked for after the one before has ended.
        ended = (last.closed_at or (last.number > 1 and last.wanted_at)) if last else None
        if ended and ended >= ran_at.get(name, 0):
            run(aggregator, name)


def latest(aggregator: Aggregator, name: str) -> list[CheckedRule]:
    """Return every rule with its last check."""
    table = store.checks
    with aggregator.database.read() as connection:
        query = select(table.c.rule, table.c.ran_at, table.c.rounds, table.c.fault)
        rows = connection.execute(query.where(table.c.campaign == name)).all()
    results = {key: result for key, *result in rows}
    return [CheckedRule(rule, *results.get(key, ())) for key, rule in RULES.items()]


def verdict(checked: list[CheckedRule], *, exact: bool) -> str:
    """Return what the last checks say together.

    With noise some rules can't be checked, nor some of a campaign that was archived before a check.
    """
    rules = [item for item in checked if (exact or not item.rule.exact) and item.ran_at is not None]
    times = [item.ran_at for item in rules if item.ran_at is not None]
    if not times:
        return "No rule has been checked yet: nothing was released, or only seconds ago."
    rounds = min(item.rounds for item in rules)
    if not rounds:
        return f"No round has been released yet; checked last on {utc_time(min(times))}."
    broken = sum(bool(item.fault) for item in rules)
    what = f"{rounds:,} released round{'' if rounds == 1 else 's'} checked"
    when = f"last on {utc_time(min(times))}"
    held = f"{broken} of {len(rules)} rules broken" if broken else f"all {len(rules)} rules hold"
    unchecked = max(item.rounds for item in rules) - rounds
    if unchecked:
        held += f"; the plans of {unchecked:,} more were deleted before they were checked"
    return f"{what}, {when}: {held}."
