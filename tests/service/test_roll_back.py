"""As docs/service/upgrade.md says: both stores go back to their backups at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.live import Live, serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal.service.aggregator.witness import Witness
from shoal.service.store import Database
from shoal.service.store.backup import back_up, restore

DEFINITION = {"arms": ["a", "b"], "min_group_size": 4, "seats": 12, "policy": "random"}


@pytest.fixture
def older(tmp_path: Path) -> Stores:
    """Empty stores, for the release that one goes back to."""
    return Stores(f"sqlite:///{tmp_path}/back/a.db", f"sqlite:///{tmp_path}/back/l.db")


def open_round(live: Live, number: int) -> None:
    live.client("operator").open_round("news", number, wait=0)
    live.work()
    assert live.client("operator").round("news", number).state == "open"


def close_round(live: Live, number: int) -> None:
    assert live.client("app").report("news", number, dict.fromkeys(users(12), 0.5)) == []
    live.client("operator").close_round("news", number)
    live.work()


def begin(live: Live, folder: Path) -> None:
    """Release round 1, open round 2 with some reports, and back up both stores."""
    operator = live.client("operator")
    operator.create_campaign("news", **DEFINITION)
    operator.enrol("news", users(12))
    live.work()
    open_round(live, 1)
    close_round(live, 1)
    open_round(live, 2)
    live.client("app").report("news", 2, dict.fromkeys(users(6), 0.5))
    back_up(live.aggregator.database, "aggregator", folder / "aggregator.backup")
    back_up(live.learner.database, "learner", folder / "learner.backup")


def go_back(older: Stores, folder: Path) -> None:
    for role, url in (("aggregator", older.aggregator), ("learner", older.learner)):
        database = Database(url)
        restore(database, role, folder / f"{role}.backup")  # type: ignore[arg-type]
        database.close()


def test_where_no_round_was_closed_since_a_campaign_goes_on_from_both_backups(
    stores: Stores, older: Stores, tmp_path: Path
) -> None:
    with serve(stores) as live:
        begin(live, tmp_path)
        live.client("app").report("news", 2, dict.fromkeys(users(12), 0.5))  # lost
    go_back(older, tmp_path)
    with serve(older) as live:
        live.work()
        close_round(live, 2)
        release = live.client("analyst").release("news", 2)
        # More than the six of the backup: an arm of fewer than four leaves nine for the other.
        assert sum(total.reporters for total in release.totals) >= 9
        open_round(live, 3)


def test_with_a_witness_rounds_that_were_closed_since_are_abandoned_and_a_campaign_goes_on(
    stores: Stores, older: Stores, tmp_path: Path
) -> None:
    file = tmp_path / "witness.json"
    with serve(stores) as live:
        live.aggregator.releases._witness = Witness(file)
        begin(live, tmp_path)
        close_round(live, 2)
        open_round(live, 3)
        close_round(live, 3)
    go_back(older, tmp_path)
    database = older.open("aggregator")
    Witness(file).reconcile(database, now=0)  # as a start does
    database.close()
    with serve(older) as live:
        live.work()
        campaign = live.client("operator").campaign("news")
        assert (campaign["round"], campaign["state"]) == (3, "abandoned")
        assert (campaign["learner"], campaign["abandoned"]) == ("in touch", 2)
        open_round(live, 4)
        close_round(live, 4)
