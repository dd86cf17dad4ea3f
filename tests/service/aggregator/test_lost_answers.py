"""A store that stores and does not answer: what is in memory follows what is stored."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Connection, select, text
from sqlalchemy.exc import OperationalError
from tests.support.service import close, even, frozen, report, start, users
from tests.support.stores import Stores

from shoal.service.aggregator import Aggregator, epochs
from shoal.service.aggregator.keys import check_secrets
from shoal.service.aggregator.schedule import tick
from shoal.service.campaign import Campaign, Schedule
from shoal.service.problems import ProblemError
from shoal.service.store import Database
from shoal.service.store import aggregator as store
from shoal.wire import LearnerProgress


@contextmanager
def lost_answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every commit take effect and raise, as where a connection is lost meanwhile."""
    good = Database.write

    @contextmanager
    def write(self: Database) -> Iterator[Connection]:
        with good(self) as connection:
            yield connection
        raise OperationalError("COMMIT", {}, Exception("connection lost"))

    with monkeypatch.context() as patch:
        patch.setattr(Database, "write", write)
        yield


def test_a_release_whose_answer_was_lost_is_a_release(
    aggregator: Aggregator, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(aggregator, even(12, size=4), least=4)
    report(aggregator, dict.fromkeys(users(12), 0.5))
    assert (
        aggregator.epochs.sync_learner({"news": LearnerProgress(1, 0)}) == []
    )  # it has nothing to do yet
    with lost_answers(monkeypatch), pytest.raises(OperationalError):
        aggregator.releases.close_round("news", 1)
    (work,) = aggregator.epochs.sync_learner({"news": LearnerProgress(1, 0)})
    assert work.state == "released"
    aggregator.rounds.request("news", 2)


def test_a_schedule_goes_on_where_a_secret_can_not_be_removed(
    sqlite_stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "key.rounds"
    database = sqlite_stores.open("aggregator")
    aggregator = Aggregator(database, key=bytes(32), secrets=folder)
    schedule = Schedule(open_every_hours=2, close_after_hours=1, close_when_all_reported=True)
    campaign = Campaign(
        arms=["a"],
        min_group_size=2,
        seats=4,
        policy="random",
        grouping="learner",
        measure="planned",
        schedule=schedule,
    )
    aggregator.directory.create("news", campaign)
    aggregator.directory.enrol("news", users(4))
    aggregator.epochs.sync_learner({})
    tick(aggregator)
    aggregator.rounds.freeze("news", 1, frozen([0] * 4, [0] * 4))
    report(aggregator, dict.fromkeys(users(4), 1.0))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", _refuse)
        tick(aggregator)
    assert len(list(folder.iterdir())) == 1
    (work,) = aggregator.epochs.sync_learner({"news": LearnerProgress(1, 0)})
    assert work.state == "released"
    aggregator.close()
    Aggregator(sqlite_stores.open("aggregator"), key=bytes(32), secrets=folder).close()
    assert list(folder.iterdir()) == []


def _refuse(path: Path, *, missing_ok: bool = False) -> None:
    raise PermissionError(13, "no", str(path))


def test_an_enrolment_whose_answer_was_lost_may_be_repeated(
    aggregator: Aggregator, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = Campaign(
        arms=["a"],
        min_group_size=2,
        seats=9,
        policy="random",
        grouping="learner",
        measure="planned",
    )
    aggregator.directory.create("news", campaign)
    with lost_answers(monkeypatch), pytest.raises(OperationalError):
        aggregator.directory.enrol("news", users(4))
    assert aggregator.directory.enrol("news", users(6)) == 2
    assert aggregator.directory.roster("news").users == users(6)


def test_a_token_whose_revocation_was_not_answered_is_revoked(
    aggregator: Aggregator, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = aggregator.access.issue("phone", "app")
    assert aggregator.access.role_of(token) == "app"
    with lost_answers(monkeypatch), pytest.raises(OperationalError):
        aggregator.access.revoke("phone")
    assert aggregator.access.role_of(token) is None


def test_nobody_at_the_door_waits_for_a_change_of_tokens(aggregator: Aggregator) -> None:
    token = aggregator.access.issue("phone", "app")
    with aggregator.access._lock:  # as while one is being stored
        found: list[str | None] = []
        thread = threading.Thread(target=lambda: found.append(aggregator.access.role_of(token)))
        thread.start()
        thread.join(120)
    assert found == ["app"]


def test_threat_17_a_store_that_forgot_a_release_does_not_make_another(
    aggregator: Aggregator,
) -> None:
    """The learner has it on record, and has said so to this very process."""
    start(aggregator, even(12, size=4), least=4)
    aggregator.epochs.sync_learner({"news": LearnerProgress(1, 0, reading=1)})
    with aggregator.database.write() as connection:  # as a replica that takes over
        connection.execute(text("UPDATE rounds SET state = 'open'"))
    with pytest.raises(ProblemError, match="knows of later rounds"):
        aggregator.releases.close_round("news", 1)


def test_a_round_is_given_up_after_the_reports_that_are_coming_in(stores: Stores) -> None:
    """They hold the round's lock: what they leave is forgotten too."""
    aggregator = Aggregator(stores.open("aggregator"), key=bytes(32))
    start(aggregator, even(12, size=4), least=4)
    database = stores.open("aggregator")
    going, done = threading.Event(), threading.Event()

    def abandon() -> None:
        going.wait(120)
        with database.write() as connection:
            epochs.abandon_through(connection, "news", 2, now=0)
        done.set()

    thread = threading.Thread(target=abandon)
    thread.start()
    with aggregator.database.write() as connection:
        round_id = connection.execute(select(store.rounds.c.id).with_for_update()).scalar_one()
        connection.execute(store.reports.insert().values(round_id=round_id, seat=3))
        going.set()
        done.wait(0.5)  # it must wait for this one to end
        assert not done.is_set()
    thread.join(120)
    with database.read() as connection:
        assert connection.execute(select(store.reports)).all() == []
        states = connection.scalars(select(store.rounds.c.state).order_by(store.rounds.c.number))
        assert states.all() == ["abandoned", "abandoned"]
    database.close()
    aggregator.close()


def test_another_store_with_the_same_key_file_leaves_the_secrets_alone(
    sqlite_stores: Stores, tmp_path: Path
) -> None:
    folder = tmp_path / "key.rounds"
    aggregator = Aggregator(sqlite_stores.open("aggregator"), key=bytes(32), secrets=folder)
    start(aggregator, even(12, size=4), least=4)
    report(aggregator, dict.fromkeys(users(12), 0.5))
    (folder / "stray.bak").write_bytes(b"not ours")
    other = Stores(f"sqlite:///{tmp_path}/other.db", "")
    second = Aggregator(other.open("aggregator"), key=bytes(32), secrets=folder)
    start(second, even(8, size=4), least=4)
    report(second, dict.fromkeys(users(8), 0.5))
    close(second)
    second.close()
    check_secrets(aggregator.database, folder, now=0)
    assert [total.total for total in close(aggregator).totals] == [2000] * 3
    assert [file.name for file in folder.iterdir()] == ["stray.bak"]
    aggregator.close()


def test_what_a_kill_left_of_a_secret_goes_with_it(sqlite_stores: Stores, tmp_path: Path) -> None:
    folder = tmp_path / "key.rounds"
    aggregator = Aggregator(sqlite_stores.open("aggregator"), key=bytes(32), secrets=folder)
    start(aggregator, even(12, size=4), least=4)
    report(aggregator, dict.fromkeys(users(12), 0.5))
    (secret,) = folder.iterdir()
    (folder / f".{secret.name}.part").hardlink_to(secret)
    close(aggregator)
    assert list(folder.iterdir()) == []
    aggregator.close()


def test_whoever_joins_while_the_learner_plans_plays_the_next_round(
    aggregator: Aggregator,
) -> None:
    campaign = Campaign(
        arms=["a"],
        min_group_size=2,
        seats=9,
        policy="random",
        grouping="learner",
        measure="planned",
    )
    aggregator.directory.create("news", campaign)
    aggregator.directory.enrol("news", users(4))
    aggregator.epochs.sync_learner({})
    aggregator.rounds.request("news", 1)
    occupied, _ = aggregator.rounds.eligible("news", 1)
    aggregator.directory.enrol("news", users(6))
    plan = frozen(np.where(occupied, 0, -1).tolist(), np.where(occupied, 0, -1).tolist())
    assert aggregator.rounds.freeze("news", 1, plan)
    close(aggregator)
    aggregator.rounds.request("news", 2)
    occupied, _ = aggregator.rounds.eligible("news", 2)
    assert occupied.sum() == 6
    aggregator.directory.move("news", [], ["user-0"])  # who leaves is not played with any more
    plan = frozen(np.where(occupied, 0, -1).tolist(), np.where(occupied, 0, -1).tolist())
    with pytest.raises(ProblemError, match="joined or left"):
        aggregator.rounds.freeze("news", 2, plan)
