"""A service measures what it serves: everyone who can be is in a group, every round."""

from __future__ import annotations

import pytest
from tests.support.live import Live, serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal.service.dashboard.progress import campaign_view


def play(live: Live, n_rounds: int, **changes: object) -> list[int]:
    """Play the tutorial's campaign; return how many users were behind each round's totals."""
    operator, app, counts = live.client("operator"), live.client("app"), []
    definition = {"arms": ["world", "sport", "science"], "min_group_size": 5, "seats": 100}
    operator.create_campaign("front-page", **{**definition, **changes})
    operator.enrol("front-page", users(60))
    for number in range(1, n_rounds + 1):
        operator.open_round("front-page", number, wait=0)
        live.work()
        shown = app.assignments("front-page", number=number)
        clicks = {reader: float(section == "sport") for reader, section in shown.items()}
        app.report("front-page", number, clicks)
        operator.close_round("front-page", number)
        live.work()
        totals = live.client("analyst").release("front-page", number).totals
        counts.append(sum(total.reporters for total in totals))
    return counts


def test_everyone_who_plays_a_crowd_is_measured_in_every_round(stores: Stores) -> None:
    with serve(stores) as live:
        counts = play(live, 6)
        assert counts[0] == 60
        assert min(counts) >= 48  # but for at most four on each of the two other arms
        assert campaign_view(live.aggregator, "front-page").words["reward"] != "not measured"


def test_the_page_says_not_measured_where_a_campaign_leaves_it_to_the_policy(
    sqlite_stores: Stores,
) -> None:
    with serve(sqlite_stores) as live:
        assert play(live, 2, policy="random", measure="planned") == [0, 0]
        view = campaign_view(live.aggregator, "front-page")
        assert view.words["reward"] == "not measured"
        assert [row[2] for row in view.tables["reward"]] == ["not measured"] * 2


def test_a_policy_that_chooses_its_groups_is_measured_too(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        changes = {"policy": "explore-then-commit", "horizon": 8, "options": {"exploration": 0.01}}
        assert min(play(live, 8, **changes)) >= 48


@pytest.mark.parametrize("policy", ["elimination-blocks", "pooled-elimination", "pooled-thompson"])
def test_groups_of_those_who_were_left_out_are_not_taken_for_the_learners_own(
    sqlite_stores: Stores, policy: str
) -> None:
    """Absent seats empty some of its groups, whose numbers must not be used again."""
    with serve(sqlite_stores) as live:
        changes = {"policy": policy, "horizon": 60, "min_group_size": 4, "seats": 66, "seed": 9}
        assert len(play(live, 8, **changes)) == 8
        assert live.learner.runs["front-page"].learnt == 8
