"""A round whose sums are damaged is abandoned; every other one goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sqlalchemy import delete, select, text, update
from tests.support.service import KEY, close, even, report, start, users
from tests.support.stores import Stores

from shoal.cli.main import main
from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.rounds import ABANDONED, OPEN
from shoal.service.problems import ProblemError
from shoal.service.store import aggregator as store

PLAN = even(12, size=4)
REWARDS = dict.fromkeys(users(12), 0.5)
BLOCK = store.sum_blocks

DAMAGE = {
    "totals cut off": update(BLOCK).values(blinded=b"\1" * 2047),
    "totals too long": update(BLOCK).values(blinded=b"\1" * 2056),
    "totals empty": update(BLOCK).values(blinded=b""),
    "reporters cut off": update(BLOCK).values(reporters=b"\1" * 1023),
    "salt cut off": update(BLOCK).values(salt=b"\1" * 15),
    "reporters that nobody marked": update(BLOCK).values(
        reporters=np.full(256, 4000, "<i4").tobytes()
    ),
    "reporters negative": update(BLOCK).values(reporters=np.full(256, -4, "<i4").tobytes()),
    "block lost": delete(BLOCK),
    "marks lost": delete(store.reports).where(store.reports.c.seat == 3),
    "marks of no seat": update(store.reports).where(store.reports.c.seat == 3).values(seat=99),
}


def play(stores: Stores, damage: str, *, rewards: dict[str, float] = REWARDS) -> Aggregator:
    """Two campaigns with an open round each; the first one's is damaged."""
    aggregator = Aggregator(stores.open("aggregator"), key=KEY)
    start(aggregator, PLAN, name="news", least=4)
    report(aggregator, rewards, name="news")
    with aggregator.database.write() as connection:
        connection.execute(DAMAGE[damage])
    start(aggregator, PLAN, name="other", least=4)
    return aggregator


def state(aggregator: Aggregator, name: str) -> str:
    last = aggregator.rounds.latest(name)
    assert last is not None
    return last.state


def check_abandoned(aggregator: Aggregator, messages: list[str]) -> None:
    assert (state(aggregator, "news"), state(aggregator, "other")) == (ABANDONED, OPEN)
    assert messages == ["an open round is abandoned: its sums are damaged"]
    with aggregator.database.read() as connection:
        last = connection.execute(select(store.audit).order_by(store.audit.c.number)).all()[-1]
        left = connection.execute(text("SELECT count(*) FROM reports WHERE round_id = 1")).scalar()
    assert (last.action, last.campaign, left) == ("round.abandon", "news", 0)
    assert '"its sums are damaged"' in last.details


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_round_is_abandoned_when_it_is_closed(
    stores: Stores, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    aggregator = play(stores, damage)
    with pytest.raises(ProblemError, match="its sums are damaged") as caught:
        aggregator.releases.close_round("news", 1)
    assert caught.value.reason.name == "round-abandoned"
    check_abandoned(aggregator, caplog.messages)
    with pytest.raises(ProblemError) as again:
        aggregator.releases.close_round("news", 1)
    assert again.value.reason.name == "round-abandoned"
    report(aggregator, REWARDS, name="other")
    assert len(close(aggregator, name="other").totals) == 3
    aggregator.rounds.request("news", 2)  # the campaign goes on
    aggregator.close()


def test_a_report_that_meets_damage_is_late_and_stops_no_other(
    stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    one, *others = users(12)
    aggregator = play(stores, "totals cut off", rewards={one: 0.5})
    batches = [
        aggregator.reports.submit(name, 1, [(user, 0.5) for user in others])
        for name in ("other", "news", "other")  # mostly in one transaction
    ]
    refused = [len(batch.result(timeout=60)) for batch in batches]
    assert refused == [0, len(others), 0]
    check_abandoned(aggregator, caplog.messages)
    report(aggregator, {one: 0.5}, name="other")
    assert len(close(aggregator, name="other").totals) == 3
    aggregator.close()


@pytest.mark.parametrize("damage", DAMAGE)
def test_doctor_names_a_damaged_round(stores: Stores, damage: str, tmp_path: Path) -> None:
    play(stores, damage).close()
    (tmp_path / "aggregator.key").write_bytes(KEY)
    stores.open("learner").close()
    settings = {
        "SHOAL_DATA": str(tmp_path),
        "SHOAL_AGGREGATOR_DATABASE": stores.aggregator,
        "SHOAL_LEARNER_DATABASE": stores.learner,
    }
    done = CliRunner().invoke(main, ["doctor", "--role", "aggregator"], env=settings)
    assert "round 1 can't be released: its sums are damaged" in done.output
    assert (done.output.count("can't be released"), done.exit_code) == (1, 1)
