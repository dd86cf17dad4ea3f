"""Campaigns that run by themselves: open every so often, close after a while or when all are in.

A tick looks at the clock and at what is stored, and at nothing else: after any pause or crash the
next tick does what is due. A round that began in the future, because the clock was wrong, begins
when that is noticed. A fault in one campaign does not keep the others from their rounds; it is
tried again with every tick, and the service is not ready meanwhile.
"""

import logging

from shoal.service.aggregator.releases import Document
from shoal.service.aggregator.rounds import OPEN, WANTED, RoundRecord
from shoal.service.aggregator.service import Aggregator
from shoal.service.campaign import Campaign, Schedule
from shoal.service.clock import HOUR
from shoal.service.problems import ProblemError

log = logging.getLogger("shoal.service")


def tick(aggregator: Aggregator) -> list[Document]:
    """Do what is due in every campaign; return what was released."""
    released, well = [], True
    for name in aggregator.directory.names():
        try:
            document = _step(aggregator, name, aggregator.directory.campaign(name))
        except ProblemError as problem:
            log.warning("schedule waits: %s", problem.kind.name)
            continue
        except Exception as error:  # a database that is away, say; its message may tell too much
            log.error("schedule fails: %s", type(error).__name__)
            well = False
            continue
        if document is not None:
            released.append(document)
    aggregator.on_schedule = well
    return released


def _step(aggregator: Aggregator, name: str, campaign: Campaign) -> Document | None:
    now, schedule = aggregator.clock(), campaign.schedule
    if schedule is None:
        return None
    last = aggregator.rounds.latest(name)
    if last is not None and max(last.wanted_at, last.opened_at or 0) > now:
        last = aggregator.rounds.begin_by(last, now=now)
    if last is None:
        if sum(aggregator.directory.roster(name).active) >= campaign.least:
            aggregator.rounds.want(name, 1)
        return None
    if last.state == OPEN:
        return (
            aggregator.releases.close_round(name, last.number)
            if _ends(aggregator, last, schedule)
            else None
        )
    over = campaign.horizon is not None and last.number >= campaign.horizon
    due = (last.opened_at or last.wanted_at) + schedule.open_every_hours * HOUR
    if last.state != WANTED and not over and now >= due:
        aggregator.rounds.want(name, last.number + 1)
    return None


def _ends(aggregator: Aggregator, open_round: RoundRecord, schedule: Schedule) -> bool:
    opened = open_round.opened_at or open_round.wanted_at
    if aggregator.clock() >= opened + schedule.close_after_hours * HOUR:
        return True
    return schedule.close_when_all_reported and aggregator.rounds.all_reported(open_round)
