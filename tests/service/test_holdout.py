"""Users who are held out: who they are, what they play, with whom they are counted."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from pydantic import ValidationError
from sqlalchemy import update
from tests.support.live import learning, serve
from tests.support.service import users
from tests.support.stores import Stores
from tests.support.visits import wait

from shoal.errors import InvalidInputError
from shoal.model.plurals import count
from shoal.service.aggregator.draws import draw
from shoal.service.aggregator.holdout import crowds_of, draw_blocks, merge_groups
from shoal.service.aggregator.rounds import FrozenPlan
from shoal.service.audit import audit
from shoal.service.campaign import Campaign
from shoal.service.dashboard.progress import campaign_view
from shoal.service.learner.run import CampaignRun
from shoal.service.problems import ProblemError
from shoal.service.store import aggregator as store
from shoal.wire import StoredRelease

NAME, N_USERS, ARMS = "front-page", 60, ["world", "sport", "science"]
DEFINITION = {
    "arms": ARMS, "min_group_size": 5, "seats": N_USERS, "reward_steps": 1, "holdout": 0.25,
}  # fmt: skip


def test_a_holdout_of_fewer_than_c_is_refused() -> None:
    for changed in ({"holdout": 0.05}, {"min_group_size": 40, "holdout": 0.5}):
        with pytest.raises(ValidationError, match="holdout must leave at least"):
            Campaign.model_validate(DEFINITION | changed)
    with pytest.raises(InvalidInputError, match="holdout must be left out for 'random'"):
        Campaign.model_validate(DEFINITION | {"policy": "random"}).make_policy()
    assert Campaign.model_validate(DEFINITION).n_held_out == 15


def test_everyone_may_be_held_out_and_as_many_as_was_said() -> None:
    draws = np.array([draw_blocks(200, 40) for _ in range(400)])
    assert ((draws >= 0).sum(axis=1) == 40).all()
    # Each seat's count is hypergeometric, 80 of 400 on average; 5.6 deviations are 2e-8 for a
    # seat, less than 1e-5 for all; a fault of the draw is a hundred off.
    assert np.abs((draws >= 0).sum(axis=0) - 80).max() < 8 * np.sqrt(400 * 0.2 * 0.8)
    assert (np.bincount(draws[0][draws[0] >= 0], minlength=16) >= 2).all()


@pytest.mark.parametrize("grouping", ["aggregator", "learner"])
def test_those_held_out_are_in_groups_of_their_own(grouping: str) -> None:
    campaign = Campaign.model_validate(
        {"arms": ARMS, "min_group_size": 5, "seats": 400, "holdout": 0.25, "grouping": grouping,
         "measure": "planned"}
    ).resolved()  # fmt: skip
    rng = np.random.default_rng(2)
    blocks = draw_blocks(400, 100)
    arms = rng.integers(0, 3, 400).astype(np.int32)
    arms[blocks >= 0] = 1
    arms[:20] = -1  # absent
    proposed = np.where(arms < 0, -1, arms * 20 + np.arange(400) % 20).astype(np.int32)
    groups = draw(arms, proposed, campaign, seed=b"1", blocks=blocks)
    for group in np.unique(groups[groups >= 0]):
        members = groups == group
        assert len(np.unique(blocks[members] >= 0)) == 1
        assert len(np.unique(arms[members])) == 1
        assert (blocks[members] < 0).any() or members.sum() >= 5
    held = (blocks >= 0) & (arms >= 0)
    assert (groups[held] >= 0).all()  # whatever the learner planned
    crowds = crowds_of(arms, blocks, 3, 5)
    assert set(crowds.numbers[held]) == {3 + 4, 3 + 5, 3 + 6, 3 + 7}  # 4 blocks of 4C or more


def test_a_block_that_is_short_joins_other_blocks_and_nobody_else() -> None:
    reporters, crowds = np.array([3, 2, 4, 9, 1]), np.array([0, 0, 7, 8, 9])
    assert merge_groups(reporters, crowds, 5, 3).tolist() == [0, 0, 2, 3, 2]
    assert merge_groups(reporters[:3], crowds[:3], 5, 3).tolist() == [0, 0, -1]


def test_the_learner_plans_its_best_arm_for_them_and_learns_nothing_of_them() -> None:
    campaign = Campaign.model_validate(DEFINITION | {"policy": "pooled-thompson"}).resolved()
    run = CampaignRun(campaign)
    held_out = np.arange(N_USERS) % 4 == 0
    everyone, offered = np.ones(N_USERS, bool), np.array([False, True, True])
    means = run.policy.arm_means(~held_out)
    assert means is not None
    arms, groups = run.plan(1, everyone, offered, held_out)
    assert (arms[held_out] == 1 + np.argmax(means[0][1:])).all()
    assert (groups[held_out] == -1).all()
    assert run.estimates(everyone & ~held_out, offered) is None  # nothing is learnt yet


def test_a_campaign_measures_what_personalisation_gives(stores: Stores) -> None:
    """Sport is the best arm for most; everyone else has a favourite that pays more."""
    with serve(stores, floor=5) as live, learning(live):
        operator, app = live.client("operator"), live.client("app")
        operator.create_campaign(NAME, **DEFINITION)
        operator.enrol(NAME, users(N_USERS))
        aggregator = live.aggregator
        blocks = aggregator.directory.blocks(NAME)
        rng = np.random.default_rng(3)
        for number in range(1, 4):
            while operator.open_round(NAME, number).state == "wanted":
                pass
            shown = app.assignments(NAME, number=number)
            held = {user for seat, user in enumerate(users(N_USERS)) if blocks[seat] >= 0}
            assert len({shown[user] for user in held}) == 1
            app.report(NAME, number, {
                user: float(rng.random() < (0.2 if user in held else 0.9)) for user in shown
            })  # fmt: skip
            operator.close_round(NAME, number)
            document = msgspec.json.decode(
                aggregator.releases.read(NAME, number, to_learner=True), type=StoredRelease
            )
            apart = [total for total in document.totals if total.holdout]
            assert sum(total.reporters for total in apart) == len(held) == 15
            assert all(total.arm == shown[next(iter(held))] for total in apart)
            wait(lambda number=number: aggregator.releases.shown(NAME) == number)  # type: ignore[misc]
            caption = campaign_view(aggregator, NAME).words["caption_reward"]
            assert f"over the last {count(number, 'round')}, about" in caption
        view = campaign_view(aggregator, NAME)
        assert view.lift is not None
        assert (view.lift.low > 0, view.lift.rounds, view.lift.by_blocks) == (True, 3, False)
        assert view.points.reward[-1] is not None
        assert view.points.reward[-1] > 0.6  # of the others alone
        assert "measured against holdout" in view.words["lift_note"]
        assert audit(aggregator.database, NAME).faults["kept"] == []
        assert not any(audit(aggregator.database, NAME).faults.values())
        plan = aggregator.rounds.plan(NAME, 3)[1]
        other = plan.arms.copy()
        other[np.flatnonzero(blocks >= 0)[0]] = (other[blocks >= 0][0] + 1) % 3
        with pytest.raises(ProblemError, match="plan"):
            FrozenPlan(other, plan.groups).check_holdout(blocks)
        mixed = plan.groups.copy()  # one of them in another group of their arm, or in none
        mixed[np.flatnonzero(blocks >= 0)[0]] = -1
        table = store.campaigns
        with aggregator.database.write() as connection:
            swapped = blocks.copy()
            swapped[np.flatnonzero(blocks >= 0)[0]] = -1
            connection.execute(
                update(table).where(table.c.name == NAME).values(holdout=swapped.tobytes())
            )
        assert "held out" in audit(aggregator.database, NAME).faults["groups"][0]
