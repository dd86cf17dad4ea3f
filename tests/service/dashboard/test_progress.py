from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
import numpy as np
import pytest
from sqlalchemy import delete, insert, select, update
from tests.support.live import Live, learning, serve
from tests.support.service import close, even, report, start, users
from tests.support.stores import Stores
from tests.support.visits import ARMS, CAMPAIGN, Visitor, create, play

from shoal.service.aggregator import Aggregator
from shoal.service.audit import RULES, THREATS
from shoal.service.campaign import Campaign
from shoal.service.dashboard import checks
from shoal.service.dashboard.progress import campaign_view
from shoal.service.dashboard.series import read_released
from shoal.service.store import Database
from shoal.service.store import aggregator as store
from shoal.wire import LearnerProgress, Noise, StoredRelease

PROGRESS = f"/v1/campaigns/{CAMPAIGN}/progress"


def fill(
    aggregator: Aggregator, n_rounds: int, *, n_arms: int = 3, spare: int = 0, **more: object
) -> None:
    """Store summaries as if that many rounds had been released and learnt.

    Nobody plays the last ``spare`` arms.
    """
    campaign = Campaign.model_validate(
        {
            "arms": [f"arm {arm}" for arm in range(n_arms + spare)], "min_group_size": 5,
            "seats": 100, "policy": "random", "reward_steps": 1, **more,
        }
    )  # fmt: skip
    aggregator.directory.create(CAMPAIGN, campaign)
    rows = [
        {
            "campaign": CAMPAIGN, "number": number, "arm": arm, "users": 20 + arm, "groups": 4,
            "smallest_group": 5, "totals": 3, "smallest_total": 5 + number % 3, "merged": 1,
            "withheld": arm == 0, "homogeneous": 0, "reporters": 400, "total": 10 + 5 * arm,
        }
        for number in range(1, n_rounds + 1) for arm in range(n_arms)
    ]  # fmt: skip
    released = {"campaign": CAMPAIGN, "state": "released", "wanted_at": 0}
    numbers = [released | {"number": number} for number in range(1, n_rounds + 1)]
    with aggregator.database.write() as connection:
        connection.execute(insert(store.summaries), rows)
        if n_rounds:
            connection.execute(insert(store.rounds), numbers)
    aggregator.epochs.sync_learner({CAMPAIGN: LearnerProgress(n_rounds, n_rounds)})


def estimate(aggregator: Aggregator, number: int, means: list[float]) -> None:
    """Store what the learner believes before a round."""
    millionths = np.round([means, [0.1] * len(means)], 6) * 1e6
    with aggregator.database.write() as connection:
        row = {"number": number, "millionths": millionths.astype("<i4").tobytes()}
        connection.execute(insert(store.estimates).values(campaign=CAMPAIGN, **row))


def test_a_summary_says_what_the_release_says(aggregator: Aggregator) -> None:
    start(aggregator, even(24, size=4), least=3)  # groups of 4: 0, 2, 4 on a; 1, 3, 5 on b
    rewards = {user: float(i < 8) for i, user in enumerate(users(24))}
    for missing in (0, 1, 2, 8, 9, 10, 11):  # group 0 has one reporter, group 2 none
        del rewards[f"user-{missing}"]
    report(aggregator, rewards)
    document = close(aggregator)
    with aggregator.database.read() as connection:
        rows = [row._asdict() for row in connection.execute(select(store.summaries))]
    by_arm = {row["arm"]: row for row in rows}
    assert by_arm.keys() == {0, 1}  # nobody plays the third
    for arm, name in ((0, "a"), (1, "b")):
        own = [total for total in document.totals if total.arm == name]
        row = by_arm[arm]
        assert (row["users"], row["groups"], row["smallest_group"]) == (12, 3, 4)
        assert row["totals"] == len(own)
        assert row["reporters"] == sum(total.reporters for total in own)
        assert row["total"] == sum(total.total for total in own)
        assert row["smallest_total"] == min(total.reporters for total in own)
        assert row["merged"] == sum(len(total.parts) > 1 for total in own)
    assert (by_arm[0]["withheld"], by_arm[1]["withheld"]) == (1, 0)
    assert sum(row["homogeneous"] for row in rows) == document.homogeneous > 0


def abandon(aggregator: Aggregator, through: int) -> None:
    """Abandon all rounds up to one that only the learner knows of."""
    aggregator.epochs.sync_learner({CAMPAIGN: LearnerProgress(through, through)})
    aggregator.epochs.abandon(CAMPAIGN, through=through)
    aggregator.epochs.sync_learner({CAMPAIGN: LearnerProgress(through, through)})


def test_abandoned_rounds_are_not_counted_as_released(aggregator: Aggregator) -> None:
    fill(aggregator, 12)
    abandon(aggregator, 18)
    view = campaign_view(aggregator, CAMPAIGN)
    assert (view.shown, view.words["rounds"], aggregator.n_abandoned(CAMPAIGN)) == (18, "12", 6)
    assert "over the last 10 rounds" in view.words["caption_reward"]
    with aggregator.database.write() as connection:  # the latest ten begin with round 3
        table = store.summaries
        connection.execute(update(table).where(table.c.number < 3).values(total=400))
    view = campaign_view(aggregator, CAMPAIGN)
    assert (view.words["reward"], view.words["gain"]) == ("0.037", "")
    with aggregator.database.write() as connection:
        connection.execute(update(table).where(table.c.number == 3).values(total=400))
    assert campaign_view(aggregator, CAMPAIGN).words["reward"] == "0.134"
    _, series = read_released(aggregator, CAMPAIGN)
    assert (series.n_released, series.last) == (12, 18)


def test_a_point_is_divided_by_its_released_rounds_alone(sqlite_aggregator: Aggregator) -> None:
    fill(sqlite_aggregator, 3)
    abandon(sqlite_aggregator, 300)
    view = campaign_view(sqlite_aggregator, CAMPAIGN)
    assert (view.width, view.points.round, view.points.whole) == (2, [2, 4], [6.0, 6.0])


def test_nothing_is_shown_before_the_learner_has_it_on_record(aggregator: Aggregator) -> None:
    start(aggregator, even(12, size=3))
    report(aggregator, dict.fromkeys(users(12), 1.0))
    aggregator.epochs.sync_learner({"news": LearnerProgress(1, 0)})
    aggregator.releases.close_round("news", 1)
    assert campaign_view(aggregator, "news").points.round == []
    aggregator.epochs.sync_learner({"news": LearnerProgress(1, 1)})
    found = campaign_view(aggregator, "news")
    assert (found.points.round, found.points.reward) == ([1], [1.0])


def test_what_is_not_known_is_not_shown_as_zero(sqlite_aggregator: Aggregator) -> None:
    fill(sqlite_aggregator, 1)
    assert campaign_view(sqlite_aggregator, CAMPAIGN).words["rounds"] == "1"
    again = Aggregator(sqlite_aggregator.database, key=bytes(32))  # the learner is away
    new = Campaign(arms=["a"], min_group_size=5, seats=9)
    again.directory.create("new", new)
    found = campaign_view(again, "new")
    assert (found.heard, found.words["rounds"]) == (True, "0")  # no round was ever asked for
    found = campaign_view(again, CAMPAIGN)
    assert (found.heard, found.points.round) == (False, [])
    assert {found.words[key] for key in ("rounds", "totals", "withheld", "merged")} == {"–"}


def test_threat_21_pages_show_nothing_of_an_open_round(aggregator: Aggregator) -> None:
    start(aggregator, even(12, size=3))
    before = campaign_view(aggregator, "news")
    for n in range(1, 12):
        report(aggregator, dict.fromkeys(users(n), 1.0))
        assert campaign_view(aggregator, "news") == before


def test_long_campaigns_are_thinned_to_what_a_chart_can_show(sqlite_aggregator: Aggregator) -> None:
    fill(sqlite_aggregator, 1001)
    found = campaign_view(sqlite_aggregator, CAMPAIGN)
    assert (found.width, len(found.points.round)) == (8, 126)
    assert found.points.round[:2] == [8, 16]
    assert found.points.round[-1] == found.shown == 1001
    reward = (10 + 15 + 20) / 1200
    assert found.points.reward == pytest.approx([reward] * 126, abs=1e-4)
    assert found.points.whole == [6.0] * 126  # a round
    assert found.points.withheld == [1.0] * 126
    assert set(found.points.total[:-1]) == {5.0}
    assert np.sum([row[-1] for row in found.points.shares]) == pytest.approx(1, abs=0.01)
    assert found.words["totals"] == f"{1001 * 9:,}"


def test_only_what_has_changed_is_sent_and_gives_the_same_whole(
    sqlite_aggregator: Aggregator,
) -> None:
    fill(sqlite_aggregator, 1001)
    sqlite_aggregator.epochs.sync_learner({CAMPAIGN: LearnerProgress(997, 997)})
    before = campaign_view(sqlite_aggregator, CAMPAIGN)
    sqlite_aggregator.epochs.sync_learner({CAMPAIGN: LearnerProgress(1001, 1001)})
    whole = campaign_view(sqlite_aggregator, CAMPAIGN)
    news = campaign_view(sqlite_aggregator, CAMPAIGN, after=before.shown, width=before.width)
    assert (news.start, news.points.round) == (124, [1000, 1001])
    for column in ("round", "reward", "crowd", "withheld"):
        old, new = getattr(before.points, column), getattr(news.points, column)
        assert old[: news.start] + new == getattr(whole.points, column)
    assert campaign_view(sqlite_aggregator, CAMPAIGN, after=1001, width=4).start == 0
    assert campaign_view(sqlite_aggregator, CAMPAIGN, after=5000, width=8).start == 0


def test_many_arms_are_charted_as_the_most_played_and_the_others(
    sqlite_aggregator: Aggregator,
) -> None:
    fill(sqlite_aggregator, 20, n_arms=40)
    found = campaign_view(sqlite_aggregator, CAMPAIGN)
    assert len(found.arms) == len(found.points.shares) == 10
    assert found.arms == [*(f"arm {arm}" for arm in range(31, 40)), "all others"]
    assert found.words["caption_estimates"].startswith("The 9 most played arms of 40. ")
    assert np.sum([row[0] for row in found.points.shares]) == pytest.approx(1, abs=0.01)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("stores")
    stores = Stores(f"sqlite:///{folder}/aggregator.db", f"sqlite:///{folder}/learner.db")
    with serve(stores) as running, learning(running):
        create(running)
        for number in (1, 2, 3):
            play(running, number)
        yield running


def test_the_learners_estimates_are_shown_as_its_own(live: Live) -> None:
    headers = {"Authorization": f"Bearer {live.tokens['analyst']}"}
    found = httpx.get(live.url + PROGRESS, headers=headers).json()
    estimates = found["estimates"]
    assert estimates["by_learner"]
    assert estimates["arm"] == ARMS
    assert all(
        low <= mean <= high
        for low, mean, high in zip(*(estimates[k] for k in ("low", "mean", "high")), strict=True)
    )
    assert estimates["mean"][1] == max(estimates["mean"])  # sport
    assert found["points"]["best"][0] is None  # before the first round nothing was learnt
    assert found["points"]["best"][-1] == pytest.approx(max(estimates["mean"]), abs=0.3)
    assert "the learner's estimate" in found["words"]["caption_reward"]


def test_without_estimates_released_averages_are_shown_as_such(
    sqlite_aggregator: Aggregator,
) -> None:
    fill(sqlite_aggregator, 4)
    found = campaign_view(sqlite_aggregator, CAMPAIGN)
    assert not found.estimates.by_learner
    assert found.estimates.mean == [0.025, 0.0375, 0.05]
    assert found.points.best == [0.05] * 4
    assert "released averages" in found.words["caption_reward"]


def test_noise_widens_the_intervals_of_released_averages(sqlite_aggregator: Aggregator) -> None:
    fill(sqlite_aggregator, 4, noise={"epsilon": 0.1}, spare=1)
    found = campaign_view(sqlite_aggregator, CAMPAIGN)
    steps = np.arange(-2000, 2001)
    chances = np.exp(-0.1 * np.abs(steps))
    variance = float((steps**2 * chances).sum() / chances.sum())
    mean, n_reporters, n_totals = 15 / 400, 1600, 12
    shrunk = (mean * n_reporters + 2) / (n_reporters + 4)
    chance = shrunk * (1 - shrunk) / n_reporters
    half = 1.96 * np.sqrt(chance + n_totals * variance / n_reporters**2)
    assert found.estimates.mean[1] == 0.0375
    assert found.estimates.high[1] == pytest.approx(mean + half, abs=1e-4)
    estimates = found.estimates
    assert (estimates.mean[3], estimates.low[3], estimates.high[3]) == (None, None, None)
    assert set(found.points.homogeneous) == {None}
    assert "epsilon 0.1 a round" in found.words["caption_reward"]
    assert "not counted" in found.words["caption_groups"]
    assert found.words["gain"].startswith("noise alone moves it by ±")


def test_rewards_that_are_all_0_are_not_certain(sqlite_aggregator: Aggregator) -> None:
    fill(sqlite_aggregator, 1)
    with sqlite_aggregator.database.write() as connection:
        connection.execute(update(store.summaries).values(total=0))
    found = campaign_view(sqlite_aggregator, CAMPAIGN)
    assert found.estimates.mean == [0, 0, 0]
    n_reporters = 400
    shrunk = 2 / (n_reporters + 4)
    half = 1.96 * np.sqrt(shrunk * (1 - shrunk) / n_reporters)
    assert found.estimates.high == pytest.approx([half] * 3, abs=1e-4)
    assert (found.words["lift"], found.words["lift_note"][:16]) == ("+0.000", "−0.007 to +0.007")


def test_no_lift_is_estimated_of_a_reward_that_is_not_measured(
    sqlite_aggregator: Aggregator,
) -> None:
    fill(sqlite_aggregator, 3)
    assert campaign_view(sqlite_aggregator, CAMPAIGN).words["lift"] != "–"
    with sqlite_aggregator.database.write() as connection:
        table = store.summaries
        withheld = update(table).where(table.c.number == 3)
        connection.execute(withheld.values(reporters=0, totals=0, total=0, smallest_total=None))
    words = campaign_view(sqlite_aggregator, CAMPAIGN).words
    assert (words["reward"], words["lift"]) == ("not measured", "–")
    assert words["lift_note"] == "the reward now is not measured; no holdout"


def test_an_arm_that_nobody_has_reported_on_is_not_the_best(sqlite_aggregator: Aggregator) -> None:
    fill(sqlite_aggregator, 3, spare=1)
    with sqlite_aggregator.database.write() as connection:  # from round 2 on someone plays arm 2
        table = store.summaries
        connection.execute(delete(table).where(table.c.arm == 2, table.c.number == 1))
    for number in range(1, 5):
        estimate(sqlite_aggregator, number, [0.01, 0.02, 0.3, 0.5])
    found = campaign_view(sqlite_aggregator, CAMPAIGN)
    assert found.points.best == [None, 0.02, 0.3]
    assert found.estimates.mean == [0.01, 0.02, 0.3, 0.5]


@pytest.mark.parametrize(("n_rounds", "said"), [(19, ""), (20, "as in the first 10 rounds")])
def test_rewards_are_compared_once_the_first_rounds_are_not_the_latest(
    sqlite_aggregator: Aggregator, n_rounds: int, said: str
) -> None:
    fill(sqlite_aggregator, n_rounds)
    assert campaign_view(sqlite_aggregator, CAMPAIGN).words["gain"] == said


def test_the_first_rounds_and_c_are_one_value_each(sqlite_aggregator: Aggregator) -> None:
    fill(sqlite_aggregator, 30)
    news = campaign_view(sqlite_aggregator, CAMPAIGN, after=29, width=1)
    assert (news.first, news.least) == (0.0375, 5)
    assert len(news.points.round) == 2
    assert {row[5] for row in news.tables["reward"]} == {"0.037"}
    assert all(cell.isdecimal() for row in news.tables["groups"] for cell in row[2:])  # counts


def test_the_page_holds_the_same_data_as_the_route(live: Live) -> None:
    with Visitor(live, "analyst") as analyst:
        page = analyst.http.get(f"/campaigns/{CAMPAIGN}").text
        assert page.count("<details open>") == 5  # for browsers without scripts
        data = page.split('id="data">')[1].split("</script>")[0]
        assert json.loads(data)["view"] == analyst.http.get(PROGRESS).json()


def test_every_broken_rule_is_found(live: Live) -> None:
    """Break the store in one way after the other, and see which rule tells."""
    aggregator = live.aggregator
    releases, rounds, summed = store.releases, store.rounds, store.summaries

    def document() -> StoredRelease:
        with aggregator.database.read() as connection:
            found = connection.scalars(
                select(releases.c.document).order_by(releases.c.round_id)
            ).first()
        return msgspec.json.decode(bytes(found or b""), type=StoredRelease)

    def forged(**change: object) -> dict[str, bytes]:
        whole = document()
        first = msgspec.structs.replace(whole.totals[0], **change)
        changed = msgspec.structs.replace(whole, totals=(first, *whole.totals[1:]))
        return {"document": msgspec.json.encode(changed)}

    one = releases.c.round_id == 1
    both = (*document().totals[0].parts, *document().totals[1].parts)
    breaks = {
        "least": ("2 users, fewer than 5", update(releases).where(one).values(forged(reporters=2))),
        "once": ("in two totals", update(releases).where(one).values(forged(parts=both))),
        "grid": ("no rewards", update(releases).where(one).values(forged(total=10_000))),
        "kept": ("summed up", update(summed).where(summed.c.number == 1).values(total=1)),
        "homogeneous": ("99 stated", update(releases).where(one).values(
            document=msgspec.json.encode(msgspec.structs.replace(document(), homogeneous=99))
        )),
        "noise": ("other noise", update(releases).where(one).values(
            document=msgspec.json.encode(msgspec.structs.replace(document(), noise=Noise(1.0, 1.0)))
        )),
        "frozen": ("not the one", update(rounds).where(rounds.c.id == 1).values(plan_hash="0")),
        "groups": ("at least", update(rounds).where(rounds.c.id == 1).values(
            groups=np.arange(60, dtype=np.int32).tobytes()
        )),
        "forgotten": ("are left", insert(store.reports).values(round_id=1, seat=3)),
        "order": ("9 follows", update(rounds).where(rounds.c.number == 3).values(number=9)),
        "contested": ("5 counted", update(rounds).where(rounds.c.number == 3).values(contested=5)),
        "log": ("is missing", insert(store.audit).values(
            number=900, at=0, actor="nobody", action="none", details="{}", digest=b""
        )),
    }  # fmt: skip
    checks.run(aggregator, CAMPAIGN)
    assert [item.fault for item in checks.latest(aggregator, CAMPAIGN)] == [""] * len(RULES)
    assert breaks.keys() == RULES.keys()
    for rule, (said, statement) in breaks.items():
        with undone(aggregator.database):
            with aggregator.database.write() as connection:
                connection.execute(statement)
            checks.run(aggregator, CAMPAIGN)
            found = dict(zip(RULES, checks.latest(aggregator, CAMPAIGN), strict=True))
            assert said in found[rule].fault, rule
            assert found[rule].ran_at is not None


def test_threats_are_called_what_the_privacy_guide_calls_them() -> None:
    guide = Path(__file__).parents[3] / "docs" / "service" / "privacy.md"
    listed = re.findall(r"^\| (\d+) \| ([^|]+) \|", guide.read_text(), re.MULTILINE)
    assert {int(number): name for number, name in listed} == THREATS


@contextmanager
def undone(database: Database) -> Iterator[None]:
    """Put back what a block has changed."""
    tables = (store.releases, store.rounds, store.summaries, store.reports)
    with database.read() as connection:
        kept = [[row._asdict() for row in connection.execute(select(table))] for table in tables]
    yield
    with database.write() as connection:
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        for table, rows in zip(tables, kept, strict=True):
            connection.execute(delete(table))
            if rows:
                connection.execute(insert(table), rows)
