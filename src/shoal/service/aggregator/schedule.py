"""Campaigns that run by themselves: open every so often, close after a while or when all are in.

A tick looks at the clock and at what is stored, and at nothing else: after any pause or crash the
next tick does what is due. A round that began or ended in the future, because the clock was
wrong, did so when that is noticed, in any campaign. A fault in one campaign does not keep the
others from their rounds; it is tried again with every tick, and the service is not ready meanwhile.
"""

import logging

from shoal.service.aggregator.rounds import OPEN, WANTED, RoundRecord
from shoal.service.aggregator.service import Aggregator
from shoal.service.campaign import Campaign, Schedule
from shoal.service.problems import ProblemError
from shoal.service.store import HOUR

log = logging.getLogger("shoal.service")


def tick(aggregator: Aggregator) -> None:
    """Do what is due in every campaign."""
    on_schedule = True
    for name in aggregator.directory.names():
        try:
            _step(aggregator, name, aggregator.directory.campaign(name))
        except ProblemError as problem:
            log.warning("schedule waits: %s", problem.reason.name)
        except Exception as error:  # a database that is away, say; its message may tell too much
            log.error("schedule fails: %s", type(error).__name__)
            on_schedule = False
    aggregator.on_schedule = on_schedule


def _step(aggregator: Aggregator, name: str, campaign: Campaign) -> None:
    now, schedule = aggregator.clock(), campaign.schedule
    last = aggregator.rounds.latest(name)
    if last is not None and max(last.wanted_at, last.opened_at or 0, last.closed_at or 0) > now:
        last = aggregator.rounds.begin_by(last, now=now)
    if schedule is None or aggregator.directory.is_archived(name):
        return
    if last is None:
        if sum(aggregator.directory.roster(name).active) >= campaign.min_reporters:
            aggregator.rounds.request(name, 1)
    elif last.state == OPEN:
        if _ends(aggregator, last, schedule):
            aggregator.releases.close_round(name, last.number)
    elif last.state != WANTED:
        over = campaign.horizon is not None and last.number >= campaign.horizon
        due = (last.opened_at or last.wanted_at) + schedule.open_every_hours * HOUR
        if not over and now >= due:
            aggregator.rounds.request(name, last.number + 1)


def _ends(aggregator: Aggregator, open_round: RoundRecord, schedule: Schedule) -> bool:
    opened = open_round.opened_at or open_round.wanted_at
    if aggregator.clock() >= opened + schedule.close_after_hours * HOUR:
        return True
    return schedule.close_when_all_reported and aggregator.rounds.all_reported(open_round)
