"""Keeping runs in the learner's store, so that each resumes at the exact round and state."""

from __future__ import annotations

from sqlalchemy import delete, insert, select, update

from shoal.service.campaign import Campaign
from shoal.service.learner.run import CampaignRun
from shoal.service.store import Database
from shoal.service.store.learner import policies, runs


class Records:
    """The runs in a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def names(self) -> list[str]:
        """Return the campaigns that there are runs of."""
        with self._database.read() as connection:
            return list(connection.scalars(select(runs.c.campaign)))

    def load(self, name: str) -> CampaignRun:
        """Return a run as it was last kept."""
        query = select(runs, policies.c.state).outerjoin(policies).where(runs.c.campaign == name)
        with self._database.read() as connection:
            row = connection.execute(query).one()
        run = CampaignRun(Campaign.model_validate_json(row.definition))
        run.restore(row.state, row.feedback)
        run.planned, run.learnt, run.reading = row.planned, row.learnt, row.reading
        return run

    def add(self, name: str, run: CampaignRun) -> None:
        """Keep a new run; its policy's first state follows from the definition."""
        row = {
            "campaign": name,
            "definition": run.campaign.model_dump_json(),
            "planned": run.planned,
            "learnt": run.learnt,
            "feedback": run.feedback_state(),
        }
        with self._database.write() as connection:
            connection.execute(insert(runs).values(row))

    def keep_progress(self, name: str, run: CampaignRun) -> None:
        """Keep that a plan is frozen, or that a release is about to be read.

        From then on the round can't be played again.
        """
        row = {"planned": run.planned, "reading": run.reading}
        with self._database.write() as connection:
            connection.execute(update(runs).where(runs.c.campaign == name).values(row))

    def keep_learnt(self, name: str, run: CampaignRun, *, moved_on: bool) -> None:
        """Keep what was learnt; the policy's state only where it has ``moved_on``."""
        row = {"planned": run.planned, "learnt": run.learnt, "feedback": run.feedback_state()}
        with self._database.write() as connection:
            connection.execute(update(runs).where(runs.c.campaign == name).values(row))
            if moved_on:
                connection.execute(delete(policies).where(policies.c.campaign == name))
                state = {"campaign": name, "state": run.policy_state()}
                connection.execute(insert(policies).values(state))
