"""The table of the privacy page: what each role, or some of them together, can find out.

In each test somebody tries to find out what user-0 reported in one round. The test's name has the
row's names, and says whether it works.
"""

from __future__ import annotations

import httpx
import numpy as np
import pytest
from tests.support.live import Live, serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal.client import Client, Release, ServiceError
from shoal.service.learner import calls

N, C = 24, 4
OTHERS = users(N)[1:]
REWARDS = {user: float(number % 3 == 0) for number, user in enumerate(users(N))}  # user-0: 1


def begin(live: Live, **changes: object) -> None:
    operator = live.client("operator")
    definition = {"arms": ["a", "b"], "min_group_size": C, "seats": N, "reward_steps": 1}
    operator.create_campaign("news", **{**definition, **changes})
    operator.enrol("news", users(N))


def open_round(live: Live) -> None:
    live.client("operator").open_round("news", 1, wait=0)
    live.work()


def mint(live: Live, name: str, *, succeeds: str | None = None) -> Client:
    admin = live.client("admin")
    live.tokens[name] = admin.token(name, "app", campaigns=["news"], succeeds=succeeds)
    return live.client(name)


def finish(live: Live) -> Release:
    live.client("operator").close_round("news", 1)
    live.work()
    return live.client("analyst").release("news", 1)


def test_monitor_alone_sees_no_campaign(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        begin(live)
        for attempt in ("campaigns", "tokens", "audit"):
            with pytest.raises(ServiceError) as caught:
                getattr(live.client("monitor"), attempt)()
            assert caught.value.name == "wrong-role"


def test_analyst_alone_reads_totals_of_at_least_c(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        begin(live)
        open_round(live)
        live.client("app").report("news", 1, REWARDS)
        assert min(total.reporters for total in finish(live).totals) >= C


def test_operator_alone_fails_with_users_of_its_own(sqlite_stores: Stores) -> None:
    """It enrols accounts beside the victim; they never report, and nothing is released."""
    with serve(sqlite_stores) as live:
        begin(live)
        operator = live.client("operator")
        operator.withdraw("news", OTHERS)
        operator.create_campaign("trap", arms=["a", "b"], min_group_size=C, seats=N)
        operator.enrol("trap", ["user-0", *(f"fake-{i}" for i in range(N - 1))])
        with pytest.raises(ServiceError) as caught:
            operator.report("trap", 1, {"fake-0": 0.0})
        assert caught.value.name == "wrong-role"
        operator.open_round("trap", 1, wait=0)
        live.work()
        live.client("app").report("trap", 1, {"user-0": 1.0})
        operator.close_round("trap", 1)
        live.work()
        assert live.client("analyst").release("trap", 1).totals == []
        with pytest.raises(ServiceError) as caught:
            operator.token("mine", "app", campaigns=["*"])
        assert caught.value.name == "wrong-role"


def play(live: Live, number: int, rewards: dict[str, float]) -> float:
    """Play a round, and return the sum of rewards as an operator reads it from the curves."""
    live.client("operator").open_round("news", number, wait=0)
    live.work()
    live.client("app").report("news", number, rewards)
    live.client("operator").close_round("news", number)
    live.work()
    headers = {"Authorization": f"Bearer {live.tokens['operator']}"}
    answer = httpx.get(f"{live.url}/v1/campaigns/news/progress", headers=headers).json()
    points = {name: column[-1] for name, column in answer["points"].items() if name != "shares"}
    n_reporters = points["typical"] * (points["whole"] + points["merged"])
    assert n_reporters == len(rewards)
    return float(points["reward"] * n_reporters)


@pytest.mark.parametrize("victim", ["user-0", "user-1"])  # one responds with 1, one with 0
def test_operator_works_over_two_rounds_for_a_user_who_never_changes(
    sqlite_stores: Stores, victim: str
) -> None:
    """It withdraws the user between them: the sums differ by what that user always responds."""
    with serve(sqlite_stores) as live:
        begin(live)
        with_victim = play(live, 1, REWARDS)
        live.client("operator").withdraw("news", [victim])
        others = {user: reward for user, reward in REWARDS.items() if user != victim}
        assert with_victim - play(live, 2, others) == pytest.approx(REWARDS[victim], abs=0.01)
        moved = [e for e in live.client("admin").audit() if e.action == "users.move"]
        assert moved[-1].details["left"] == 1  # it is on record, without a name


def test_monitor_who_knows_the_one_campaign_sees_that_all_responded_the_same(
    sqlite_stores: Stores,
) -> None:
    """One total, and it is homogeneous: whoever is in it knows everyone's reward from his own."""
    with serve(sqlite_stores) as live:
        begin(live)
        live.client("operator").withdraw("news", users(N)[C + 1 :])
        open_round(live)
        live.client("app").report("news", 1, dict.fromkeys(users(C + 1), 1.0))
        finish(live)
        headers = {"Authorization": f"Bearer {live.tokens['monitor']}"}
        metrics = httpx.get(f"{live.url}/metrics", headers=headers).text
        assert "shoal_released_totals_total 1.0" in metrics
        assert "shoal_homogeneous_totals_total 1.0" in metrics
        assert "news" not in metrics


def test_operator_and_a_second_app_token_fail_and_it_shows(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        begin(live)
        second = mint(live, "second")
        open_round(live)
        live.client("app").report("news", 1, {"user-0": 1.0})
        second.report("news", 1, dict.fromkeys(OTHERS, 0.0))
        release = finish(live)
        assert (release.totals, release.contested) == ([], N - 1)


def test_admin_with_a_successor_works_and_is_on_record(sqlite_stores: Stores) -> None:
    """Whoever mints tokens can take over the reporting. The log and contested reports tell."""
    with serve(sqlite_stores) as live:
        begin(live)
        open_round(live)
        live.client("app").report("news", 1, {"user-0": 1.0})
        mint(live, "evil", succeeds="app").report("news", 1, dict.fromkeys(OTHERS, 0.0))
        live.client("app").report("news", 1, REWARDS)  # the genuine ones, contested
        release = finish(live)
        assert sum(total.total for total in release.totals) == 1  # user-0's
        assert release.contested == N
        made = [e for e in live.client("admin").audit() if e.action == "token.create"]
        assert (made[-1].actor, made[-1].details["succeeds"]) == ("admin", "app")


def test_admin_with_a_successor_fails_where_contested_rounds_are_withheld(
    sqlite_stores: Stores,
) -> None:
    with serve(sqlite_stores) as live:
        begin(live, contested="refuse")
        open_round(live)
        live.client("app").report("news", 1, {"user-0": 1.0})
        mint(live, "evil", succeeds="app").report("news", 1, dict.fromkeys(OTHERS, 0.0))
        live.client("app").report("news", 1, REWARDS)
        assert finish(live).totals == []


def propose(live: Live, alone: list[int]) -> None:
    """A learner that puts some seats on an arm of their own, as one group."""
    live.client("operator").open_round("news", 1, wait=0)
    arms, groups = np.zeros(N, np.int32), np.full(N, -1, np.int32)
    arms[alone], groups[alone] = 1, 0
    live.aggregator.epochs.sync_learner({})
    with Client(live.url, live.tokens["learner"]) as client:
        client.run(calls.publish_plan("news", 1, arms, groups, None))


def test_learner_and_c_minus_one_users_work_on_an_arm_of_their_own(
    sqlite_stores: Stores,
) -> None:
    """The aggregator draws company from those who play the arm; the arm is the learner's."""
    with serve(sqlite_stores) as live:
        begin(live)
        propose(live, list(range(C)))  # user-0 and three who tell the learner what they reported
        live.client("app").report("news", 1, REWARDS)
        release = finish_for_learner(live)
        (total,) = (total for total in release.totals if total.arm == "b")
        assert total.total - sum(REWARDS[f"user-{i}"] for i in range(1, C)) == REWARDS["user-0"]


def test_learner_and_as_many_users_as_colluders_fail(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        begin(live, colluders=C - 1)
        propose(live, list(range(C)))
        live.client("app").report("news", 1, REWARDS)
        release = finish_for_learner(live)
        assert [total.arm for total in release.totals] == ["a"] * len(release.totals)
        assert min(total.reporters for total in release.totals) - (C - 1) >= C


def test_learner_and_users_it_knows_fail_in_a_crowd(sqlite_stores: Stores) -> None:
    """On the arm of everyone it can't choose who is with whom: threat 27."""
    with serve(sqlite_stores) as live:
        begin(live)
        live.client("operator").open_round("news", 1, wait=0)
        arms, groups = np.zeros(N, np.int32), np.full(N, -1, np.int32)
        groups[:C] = 0
        live.aggregator.epochs.sync_learner({})
        with Client(live.url, live.tokens["learner"]) as client:
            client.run(calls.publish_plan("news", 1, arms, groups, None))
        drawn = live.aggregator.rounds.plan("news", 1)[1].groups
        # By chance they would meet with probability 3! / (23 · 22 · 21) = 6e-4; the key is fixed.
        assert len(set(drawn[:C].tolist())) > 1


def finish_for_learner(live: Live) -> Release:
    live.client("operator").close_round("news", 1)
    with Client(live.url, live.tokens["learner"]) as client:
        return client.run(calls.read_release("news", 1, N))[0]
