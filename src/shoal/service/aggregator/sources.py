"""Who reports: one token in a campaign, the first that does, until its successor takes over.

A successor is named so. Only a report that can be counted makes a token the one that reports.
Reports by any other token are contested: they are refused, and their number is released. Each
release's entry in the audit log names the token: an entry of its own would show when a report came.
"""

from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select, update

from shoal.service.store import aggregator as store

_LOCK = (
    select(store.rounds.c.state, store.campaigns.c.source)
    .join(store.campaigns)
    .where(store.rounds.c.id == bindparam("round_id"))
    .with_for_update(of=store.rounds)
)


class Source(NamedTuple):
    """The token that reports, and the one whose reporting it may take over."""

    name: str = ""
    succeeds: str | None = None

    def may_report(self, present: str | None) -> bool:
        """Return whether it is the ``present`` source of a campaign, its successor or the first."""
        return present is None or present in (self.name, self.succeeds)


def lock_for_reports(connection: Connection, round_id: int) -> tuple[str, str | None]:
    """Return a round's state and the token that reports in its campaign; lock the round."""
    row = connection.execute(_LOCK, {"round_id": round_id}).one()
    return row.state, row.source


def source_of(connection: Connection, campaign: str) -> str | None:
    """Return the token that reports in a campaign, None before the first report."""
    table = store.campaigns
    return connection.scalar(select(table.c.source).where(table.c.name == campaign))


def set_source(connection: Connection, round_id: int, source: str | None) -> None:
    """Let a token be the one that reports in a round's campaign."""
    table = store.campaigns
    campaign = select(store.rounds.c.campaign).where(store.rounds.c.id == round_id)
    changed = update(table).where(table.c.name == campaign.scalar_subquery())
    connection.execute(changed.values(source=source))


def add_contested(connection: Connection, round_id: int, n_reports: int) -> None:
    """Count reports by a second source."""
    table = store.rounds
    more = update(table).where(table.c.id == round_id)
    connection.execute(more.values(contested=table.c.contested + n_reports))
