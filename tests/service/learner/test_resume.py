"""Threat 17, and resuming: what each role remembers when the other has lost something."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.support.live import Live, serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal import wire
from shoal.client import Round, ServiceError
from shoal.service.learner import calls
from shoal.service.learner.service import Learner
from shoal.service.store import Database
from shoal.service.store import aggregator as store
from shoal.service.store.backup import back_up, restore
from shoal.wire import LearnerProgress

DEFINITION = {
    "arms": ["a", "b"], "min_group_size": 3, "seats": 12, "horizon": 500,
    "policy": "explore-then-commit", "options": {"exploration": 0.05},
}  # fmt: skip


def begin(live: Live, **changes: object) -> None:
    operator = live.client("operator")
    operator.create_campaign("news", **{**DEFINITION, **changes})
    operator.enrol("news", users(12))


def play(live: Live, number: int, *, close: bool = True) -> None:
    operator, app = live.client("operator"), live.client("app")
    operator.open_round("news", number, wait=0)
    live.work()
    arms = app.assignments("news")
    app.report("news", number, {u: float(arms[u] == "a") for u in users(12)})
    if close:
        operator.close_round("news", number)
        live.work()


@pytest.mark.parametrize("changes", [{}, {"policy": "shoal", "options": {}}])
def test_a_learner_resumes_at_the_exact_round_with_the_exact_state(
    stores: Stores, changes: dict[str, object]
) -> None:
    with serve(stores) as live:
        begin(live, **changes)
        for number in range(1, 7):
            play(live, number)
            if number % 3 == 0:  # forget everything but the store
                before = live.learner.runs["news"]
                live.learner = Learner(live.learner.database, live.learner._client)
                after = live.learner.runs["news"]
                assert after.policy.ask().groups.tolist() == before.policy.ask().groups.tolist()
                assert (after.planned, after.learnt) == (number, number)
                assert after.policy_state() == before.policy_state()
                assert after.feedback_state() == before.feedback_state()


def test_a_learner_that_lost_its_store_learns_everything_again(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        begin(live)
        for number in range(1, 10):
            play(live, number)
        before = live.learner.runs["news"]
        live.learner.database.close()
        Path(sqlite_stores.learner.removeprefix("sqlite:///")).unlink()
        live.learner = Learner(sqlite_stores.open("learner"), live.learner._client)
        live.work()
        again = live.learner.runs["news"]
        assert again.learnt == 9
        assert again.policy_state() == before.policy_state()


@pytest.mark.parametrize("lost", ["before the plan", "while open", "open, later released"])
def test_threat_17_an_old_backup_reopens_rounds(
    sqlite_stores: Stores, tmp_path: Path, lost: str
) -> None:
    file = Path(sqlite_stores.aggregator.removeprefix("sqlite:///"))
    backup = tmp_path / "old.backup"

    with serve(sqlite_stores) as live:
        begin(live)
        play(live, 1)
        if lost == "before the plan":
            live.client("operator").open_round("news", 2, wait=0)
            back_up(live.aggregator.database, "aggregator", backup)
            play(live, 2, close=False)
        else:
            play(live, 2, close=False)
            back_up(live.aggregator.database, "aggregator", backup)
            live.client("operator").close_round("news", 2)
            live.work()
            if lost == "while open":
                play(live, 3, close=False)
        planned = live.learner.runs["news"].planned
    for leftover in (file, file.with_name(file.name + "-wal"), file.with_name(file.name + "-shm")):
        leftover.unlink(missing_ok=True)
    database = Database(sqlite_stores.aggregator)
    restore(database, "aggregator", backup)
    database.close()
    with serve(sqlite_stores) as live:
        operator, analyst = (
            live.client("operator", patience=0.2),
            live.client("analyst", patience=0.2),
        )
        # Nothing is released, and nothing shown, before the learner has been heard.
        for attempt in (
            lambda: operator.close_round("news", 2),
            lambda: analyst.release("news", 1),
        ):
            with pytest.raises(ServiceError) as caught:
                attempt()
            assert caught.value.name == "learner-silent"
        live.work()
        with pytest.raises(ServiceError) as caught:  # not before an operator has said so
            analyst.release("news", 1)
        assert caught.value.name == "learner-ahead"
        assert operator.campaign("news")["ahead"] == planned
        assert operator.abandon("news", through=planned)["abandoned"] == planned - 1
        live.work()
        for number in {2, planned}:
            assert operator.round("news", number).state == "abandoned"
            with pytest.raises(ServiceError) as caught:
                operator.close_round("news", number)
            assert caught.value.name == "round-abandoned"
        assert analyst.release("news", 1).round == 1
        play(live, planned + 1)
        assert analyst.release("news", planned + 1).totals
        if lost != "before the plan":
            late = live.client("app").report("news", 2, {"user-0": 1.0})
            assert [item.reason for item in late] == ["late-report"]


KILLED = """
import os, signal, sys
from shoal.client import Client
from shoal.service.learner.run import Records
from shoal.service.learner import calls
from shoal.service.learner.service import Learner
from shoal.service.store import Database
from shoal.service.store import aggregator as store

Records.keep_learnt = lambda *args, **kwargs: os.kill(os.getpid(), signal.SIGKILL)
store, url, token = sys.argv[1:]
Learner(Database(store), Client(url, token)).work(wait=0.0)
"""


@pytest.mark.slow
def test_threat_17_a_release_that_was_read_and_not_learnt_is_never_played_again(
    sqlite_stores: Stores, tmp_path: Path
) -> None:
    """The learner is killed between reading and storing a release; then an old backup returns."""
    file = Path(sqlite_stores.aggregator.removeprefix("sqlite:///"))
    backup = tmp_path / "old.backup"
    with serve(sqlite_stores) as live:
        begin(live)
        play(live, 1)
        play(live, 2, close=False)
        live.work()
        back_up(live.aggregator.database, "aggregator", backup)
        live.client("operator").close_round("news", 2)
        arguments = [sqlite_stores.learner, live.url, live.tokens["learner"]]
        done = subprocess.run([sys.executable, "-c", KILLED, *arguments], timeout=240, check=False)
        assert done.returncode == -signal.SIGKILL
    file.unlink()
    database = Database(sqlite_stores.aggregator)
    restore(database, "aggregator", backup)
    database.close()
    with serve(sqlite_stores) as live:
        run = live.learner.runs["news"]
        assert (run.planned, run.learnt, run.reading) == (2, 1, 2)
        assert live.client("operator").round("news", 2).state == "open"
        live.work()
        operator = live.client("operator")
        with pytest.raises(ServiceError) as caught:
            operator.close_round("news", 2)
        assert caught.value.name == "learner-ahead"
        operator.abandon("news", through=2)
        live.work()
        assert operator.round("news", 2).state == "abandoned"
        play(live, 3)
        assert live.client("analyst").release("news", 3).totals


def test_rounds_that_a_restored_aggregator_never_heard_of_are_skipped(
    sqlite_stores: Stores,
) -> None:
    """As many as an operator abandons, at the cost of one row."""
    with serve(sqlite_stores) as live:
        begin(live)
        play(live, 1)
        live.aggregator.epochs.sync_learner({"news": LearnerProgress(90_000, 89_999)})
        operator = live.client("operator")
        assert operator.abandon("news", through=90_000)["abandoned"] == 89_999
        assert operator.campaign("news")["round"] == 90_000
        assert operator.round("news", 500) == Round(500, "abandoned")
        assert operator.open_round("news", 2, wait=0) == Round(2, "abandoned")
        for number in (500, 90_000):
            with pytest.raises(ServiceError) as caught:
                live.client("analyst").release("news", number)
            assert caught.value.name == "round-abandoned"
        with live.aggregator.database.read() as connection:
            assert len(connection.execute(store.rounds.select()).all()) == 2


def test_a_release_is_shown_once_the_learner_has_it_on_record(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        begin(live)
        play(live, 1, close=False)
        live.client("operator").close_round("news", 1)
        with pytest.raises(ServiceError) as caught:
            live.client("analyst", patience=0.1).release("news", 1)
        assert caught.value.name == "learner-silent"
        live.work()
        assert live.client("analyst").release("news", 1).round == 1


def test_totals_of_a_plan_that_is_not_its_own_are_left_out(
    sqlite_stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    with serve(sqlite_stores) as live:
        begin(live, policy="shoal", options={})
        for number in range(1, 4):
            play(live, number)
        live.client("operator").open_round("news", 4, wait=0)
        live.work()
        run = live.learner.runs["news"]
        before = run.policy.arm_means(np.ones(12, bool))
        live.client("app").report("news", 4, dict.fromkeys(users(12), 1.0))
        run._arms = run._arms[::-1] + 1  # as if the plan in play were not the frozen one
        live.client("operator").close_round("news", 4)
        live.work()
        assert "a release follows another plan" in caplog.text
        assert run.learnt == 4
        after = run.policy.arm_means(np.ones(12, bool))
        assert before is not None
        assert after is not None
        np.testing.assert_allclose(before.means, after.means, atol=1e-3)  # but for a new prior
        play(live, 5)
        assert run.learnt == 5


def test_a_campaign_made_anew_with_a_smaller_c_is_not_planned_for(
    sqlite_stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    with serve(sqlite_stores) as live:
        begin(live)
        for number in range(1, 4):
            play(live, number)
        run = live.learner.runs["news"]
        run.campaign = run.campaign.model_copy(update={"min_group_size": 5})  # what it remembers
        live.client("operator").open_round("news", 4, wait=0)
        live.learner.work(wait=0)
        assert "a campaign waits: DefinitionChangedError" in caplog.text
        assert live.aggregator.rounds.get("news", 4).state == "wanted"


def test_no_estimate_is_of_fewer_users_than_a_total(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        begin(live, policy="shoal", options={})
        for number in range(1, 4):
            play(live, number)
        live.client("operator").withdraw("news", users(12)[2:])
        live.client("operator").open_round("news", 4, wait=0)
        live.work()
        assert live.aggregator.rounds.get("news", 4).state == "open"
        frozen = live.aggregator.rounds.plan("news", 4)[1]
        plan = frozen.arms, frozen.groups
        with pytest.raises(ServiceError, match="estimates must be of at least 3 users"):
            live.learner._client.run(
                calls.publish_plan("news", 4, *plan, wire.Estimates([0.5, 0.5], [0.1, 0.1]))
            )
