"""One test for each row of the threat list that lies inside the aggregator."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.service import close, even, frozen, report, start, users

from shoal.service.aggregator import Aggregator
from shoal.service.campaign import Campaign, Noise
from shoal.service.problems import ProblemError
from shoal.wire import LearnerProgress

repeatedly = settings(
    deadline=None,
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def refusal(caught: pytest.ExceptionInfo[ProblemError]) -> str:
    return caught.value.reason.name


def test_threat_01_group_shrinks_below_c(aggregator: Aggregator) -> None:
    rng = random.Random(1)
    for trial in range(12):
        name, n = f"dropout-{trial}", 40
        start(aggregator, even(n, size=5), name=name, least=5)
        present = [u for u in users(n) if rng.random() < trial / 12]
        report(aggregator, dict.fromkeys(present, 1.0), name=name)
        document = close(aggregator, name=name)
        parts = [part for total in document.totals for part in total.parts]
        assert all(total.reporters >= 5 for total in document.totals)
        assert len(parts) == len(set(parts))
        assert len(parts) + document.withheld == 8
        for arm in ("a", "b"):  # a whole arm is withheld only where it is short as a whole
            seats = [i for i in range(n) if (i // 5) % 2 == "ab".index(arm)]
            reporters = sum(f"user-{i}" in present for i in seats)
            told = sum(t.reporters for t in document.totals if t.arm == arm)
            assert told == (reporters if reporters >= 5 else 0)


def test_threat_02_duplicate_report(aggregator: Aggregator) -> None:
    start(aggregator, even(12, size=4), least=4, reward_steps=1_000_000)
    values = {user: 2**i / 1_000_000 for i, user in enumerate(users(12))}
    assert report(aggregator, values) == []
    assert report(aggregator, dict.fromkeys(users(12), 1.0)) == []
    twice = [("user-0", 1.0), ("user-0", 0.5)]
    assert aggregator.reports.submit("news", 1, twice).result() == []
    totals = {t.parts: t.total for t in close(aggregator).totals}
    assert totals == {(0,): 0b1111, (1,): 0b11110000, (2,): 0b111100000000}
    assert report(aggregator, values) == []  # a repeat answers the same, after the release too


def test_threat_03_replay_in_another_round(aggregator: Aggregator) -> None:
    log = dict.fromkeys(users(12), 1.0)
    start(aggregator, even(12, size=4), least=4)
    report(aggregator, log)
    first = close(aggregator)
    aggregator.rounds.request("news", 2)
    regrouped = even(12, size=6)
    aggregator.rounds.freeze("news", 2, regrouped)
    report(aggregator, log, number=1)  # the log again, under its own name: nothing moves
    assert close(aggregator, number=2).totals == []
    assert close(aggregator) == first
    aggregator.rounds.request("news", 3)
    aggregator.rounds.freeze("news", 3, regrouped)
    report(aggregator, log, number=3)  # under the new name: the new plan's groups, once
    report(aggregator, log, number=3)
    third = close(aggregator, number=3)
    assert [(t.parts, t.reporters, t.total) for t in third.totals] == [
        ((0,), 6, 6000), ((1,), 6, 6000),
    ]  # fmt: skip


@given(groups=st.lists(st.integers(-1, 3), min_size=12, max_size=12), seed=st.integers(0, 99))
@repeatedly
def test_threat_04_overlapping_groups_in_a_round(
    sqlite_aggregator: Aggregator, groups: list[int], seed: int
) -> None:
    """A plan is one group number per seat: no plan that can be sent puts a user in two totals."""
    name = f"overlap-{random.Random(str((groups, seed))).getrandbits(60):x}"
    arms = np.random.default_rng(seed).integers(2, size=12).tolist()
    sizes = {g: groups.count(g) for g in groups if g >= 0}
    one_arm = all(len({a for a, h in zip(arms, groups, strict=True) if h == g}) == 1 for g in sizes)
    if not one_arm or any(size < 3 for size in sizes.values()):
        with pytest.raises(ProblemError) as caught:
            start(sqlite_aggregator, frozen(arms, groups), name=name, least=3)
        assert refusal(caught) == "plan-refused"
        return
    start(sqlite_aggregator, frozen(arms, groups), name=name, least=3)
    report(sqlite_aggregator, dict.fromkeys(users(12), 1.0), name=name)
    document = close(sqlite_aggregator, name=name)
    assert sum(t.reporters for t in document.totals) == sum(sizes.values())


def test_threat_05_the_same_round_with_new_groups(aggregator: Aggregator) -> None:
    start(aggregator, even(12, size=4), least=4)
    assert not aggregator.rounds.freeze("news", 1, even(12, size=4))
    for moment in ("before a report", "after a report", "after the release"):
        with pytest.raises(ProblemError) as caught:
            aggregator.rounds.freeze("news", 1, even(12, size=6))
        assert refusal(caught) == "plan-frozen", moment
        if moment == "before a report":
            report(aggregator, dict.fromkeys(users(12), 1.0))
        else:
            close(aggregator)


def test_threat_06_late_report(aggregator: Aggregator) -> None:
    start(aggregator, even(12, size=4), least=4)
    report(aggregator, dict.fromkeys(users(8), 0.5))
    close(aggregator)
    before = aggregator.releases.read("news", 1)
    for _ in range(3):
        late = report(aggregator, {"user-0": 1.0, "user-9": 1.0, "user-10": 0.0})
        assert late == [(1, "late-report"), (2, "late-report")]
        assert aggregator.releases.read("news", 1) == before


def test_threat_07_totals_from_which_a_smaller_set_can_be_derived(aggregator: Aggregator) -> None:
    rng = random.Random(7)
    for trial in range(8):
        name, n, least = f"rank-{trial}", 30, 4
        start(aggregator, even(n, size=5), name=name, least=least)
        report(aggregator, {u: 1.0 for u in users(n) if rng.random() < 0.7}, name=name)
        document = close(aggregator, name=name)
        again = close(aggregator, name=name)  # a second close gives nothing new
        assert again == document
        counted = aggregator.releases.counted(name, 1)
        rows = np.zeros((len(document.totals), n))
        for row, total in zip(rows, document.totals, strict=True):
            row[[i for i in range(n) if counted[i] and i // 5 in total.parts]] = 1
            assert row.sum() == total.reporters >= least
        # Disjoint rows: every combination that is a 0-1 vector is a union of whole rows.
        assert np.linalg.matrix_rank(rows) == len(rows) if len(rows) else True
        assert (rows.sum(axis=0) <= 1).all()


def test_threat_08_fixed_rewards_and_regrouping(sqlite_aggregator: Aggregator) -> None:
    """Stated, not prevented: over many rounds with fixed rewards, each reward is learnt."""
    rng, n, size = np.random.default_rng(8), 12, 4
    rewards = rng.integers(0, 2, n).astype(float)
    rows, values = [], []
    for number in range(1, 41):
        groups = np.empty(n, int)
        groups[rng.permutation(n)] = np.arange(n) // size
        plan = frozen([0] * n, groups.tolist())
        start(sqlite_aggregator, plan, least=size, number=number)
        report(sqlite_aggregator, dict(zip(users(n), rewards, strict=True)), number=number)
        for total in close(sqlite_aggregator, number=number).totals:
            rows.append(np.isin(groups, total.parts).astype(float))
            values.append(total.total / 1000)
    single, *_ = np.linalg.lstsq(np.array(rows[:3]), np.array(values[:3]), rcond=None)
    assert not np.allclose(single, rewards)  # one round shows totals only
    learnt, *_ = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)
    assert np.allclose(learnt, rewards)  # forty show everyone's mean: the learner's purpose


def test_threat_09_homogeneous_total(aggregator: Aggregator) -> None:
    start(aggregator, even(16, size=4), least=4)
    rewards = [0.0] * 4 + [1.0] * 4 + [0.0, 1.0, 0.0, 1.0] + [0.5] * 4
    report(aggregator, dict(zip(users(16), rewards, strict=True)))
    assert close(aggregator).homogeneous == 2


def test_threat_08_noise_spoils_the_reconstruction_from_as_many_rounds(
    sqlite_aggregator: Aggregator,
) -> None:
    """The same attack on twelve users and forty rounds, with epsilon 0.1 a round."""
    rng, n, size = np.random.default_rng(8), 12, 4
    rewards = rng.integers(0, 2, n).astype(float)
    rows, values = [], []
    for number in range(1, 41):
        groups = np.empty(n, int)
        groups[rng.permutation(n)] = np.arange(n) // size
        plan = frozen([0] * n, groups.tolist())
        start(sqlite_aggregator, plan, least=size, number=number, noise=Noise(epsilon=0.1))
        report(sqlite_aggregator, dict(zip(users(n), rewards, strict=True)), number=number)
        for total in close(sqlite_aggregator, number=number).totals:
            rows.append(np.isin(groups, total.parts).astype(float))
            values.append(total.total / 1000)
    learnt, *_ = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)
    # Noise of 14 rewards on each of 120 totals: all twelve within 0.5 has odds below 1e-6.
    assert np.abs(learnt - rewards).max() > 0.5


def test_threat_09_noise_hides_a_homogeneous_total(aggregator: Aggregator) -> None:
    start(aggregator, even(16, size=4), least=4, noise=Noise(epsilon=0.01))
    report(aggregator, dict.fromkeys(users(16), 1.0))
    document = close(aggregator)
    assert document.homogeneous == 0
    assert document.noise is not None
    assert (document.noise.epsilon, document.noise.scale) == (0.01, 100_000.0)
    # Four draws of scale 100,000 that are all exactly 0 have odds of (1 / 200,000)^4.
    assert [total.total for total in document.totals] != [4000] * 4


def test_threat_10_sybils_or_users_that_the_learner_controls(aggregator: Aggregator) -> None:
    colluders, honest = 2, 3
    campaign = Campaign(
        arms=["a"], min_group_size=honest, colluders=colluders, seats=20, policy="random",
        grouping="learner", measure="planned",
    )  # fmt: skip
    aggregator.directory.create("sybil", campaign)
    aggregator.directory.enrol("sybil", users(6))
    aggregator.epochs.sync_learner({})
    aggregator.rounds.request("sybil", 1)
    absent = [0] * 6 + [-1] * 14
    for arms, groups, why in (
        ([0] * 20, [0] * 20, "roster-changed"),  # seats that the operator gave to nobody
        (absent, [0] * 6 + [0] * 14, "plan-refused"),  # the same, hidden in a group
        (absent, [0] * 4 + [-1] * 16, "plan-refused"),  # C members, too few with colluders
    ):
        with pytest.raises(ProblemError) as caught:
            aggregator.rounds.freeze("sybil", 1, frozen(arms, groups))
        assert refusal(caught) == why
    aggregator.rounds.freeze("sybil", 1, frozen(absent, [0] * 6 + [-1] * 14))
    assert report(aggregator, {"made-up": 1.0}, name="sybil") == [(0, "unknown-user")]
    report(aggregator, {f"user-{i}": 1.0 for i in range(4)}, name="sybil")
    assert close(aggregator, name="sybil").totals == []
    aggregator.rounds.request("sybil", 2)
    aggregator.rounds.freeze("sybil", 2, frozen(absent, [0] * 6 + [-1] * 14))
    report(aggregator, {f"user-{i}": 1.0 for i in range(5)}, name="sybil", number=2)
    (total,) = close(aggregator, name="sybil", number=2).totals
    assert total.reporters - colluders >= honest  # what is left when they subtract their own


@pytest.mark.parametrize(
    ("reward", "counts"),
    [
        (0.0, True), (1.0, True), (math.nextafter(1.0, 2.0), False), (5e-324, True),
        (-5e-324, False), (-0.0, True), (math.nextafter(1.0, 0.0), True), (2.0, False),
        (-1.0, False), (1e308, False),
    ],
)  # fmt: skip
def test_threat_11_out_of_range_reward(
    sqlite_aggregator: Aggregator, reward: float, counts: bool
) -> None:
    start(sqlite_aggregator, even(4, size=4), least=3)
    expected = [] if counts else [(0, "reward-out-of-range")]
    assert report(sqlite_aggregator, {"user-0": reward}) == expected
    report(sqlite_aggregator, {f"user-{i}": 0.0 for i in (1, 2, 3)})
    assert close(sqlite_aggregator).totals[0].reporters == 3 + counts


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
def test_threat_12_nan_and_infinity_are_refused_inside_too(
    sqlite_aggregator: Aggregator, reward: float
) -> None:
    start(sqlite_aggregator, even(4, size=4), least=3)
    assert report(sqlite_aggregator, {"user-0": reward}) == [(0, "reward-out-of-range")]


def test_threat_13_fingerprints_in_low_order_bits(aggregator: Aggregator) -> None:
    """Users with the same coarse reward and different low-order bits leave the same totals."""
    totals = []
    for name, mark in (("plain", 0.0), ("marked", 2.0**-30)):
        start(aggregator, even(8, size=4), name=name, least=4)
        rewards = {u: 0.25 + mark * (i + 1) for i, u in enumerate(users(8))}
        report(aggregator, rewards, name=name)
        totals.append(close(aggregator, name=name).totals)
    assert totals[0] == totals[1]


def test_threat_14_order_or_rounding_of_float_sums(aggregator: Aggregator) -> None:
    rewards = dict(zip(users(12), np.random.default_rng(14).random(12).tolist(), strict=True))
    seen = set()
    for trial in range(6):
        name = f"order-{trial}"
        start(aggregator, even(12, size=4), name=name, least=4)
        mixed = random.Random(trial).sample(sorted(rewards.items()), 12)
        cut = 2 * trial
        report(aggregator, dict(mixed[:cut]), name=name)
        report(aggregator, dict(mixed[cut:]), name=name)
        close(aggregator, name=name)
        seen.add(aggregator.releases.read(name, 1).replace(name.encode(), b"name"))
    assert len(seen) == 1


@pytest.mark.parametrize("noise", [None, Noise(epsilon=0.1)], ids=["exact", "noisy"])
def test_threat_16_fresh_noise_on_every_retry(aggregator: Aggregator, noise: Noise | None) -> None:
    """Whatever is released is stored first: a thousand retries show one value."""
    start(aggregator, even(12, size=4), least=4, noise=noise)
    report(aggregator, dict.fromkeys(users(12), 0.3))
    close(aggregator)
    seen = set()
    for retry in range(1000):
        if retry % 100 == 0:
            assert aggregator.releases.close_round("news", 1) is None
        seen.add(aggregator.releases.read("news", 1))
    assert len(seen) == 1


def test_threat_21_release_time_or_count_shows_a_reporter(aggregator: Aggregator) -> None:
    """While a round is open, nothing about it differs between n and n+1 reporters."""
    views = []
    for name, n in (("few", 3), ("more", 4)):
        start(aggregator, even(12, size=4), name=name, least=4)
        report(aggregator, dict.fromkeys(users(n), 1.0), name=name)
        found = aggregator.rounds.get(name, 1)
        views.append((found.state, found.plan_hash, found.opened_at, found.closed_at))
        with pytest.raises(ProblemError) as caught:
            aggregator.releases.read(name, 1)
        assert refusal(caught) == "not-released"
        assert (
            aggregator.epochs.sync_learner(
                {"few": LearnerProgress(1, 0), "more": LearnerProgress(1, 0)}
            )
            == []
        )
    assert views[0] == views[1]
    # In the release, a short group leaves no count at all.
    few = close(aggregator, name="few")
    assert few.totals == []


def test_threat_22_c_lowered_later(stores_floor: Aggregator) -> None:
    def campaign(c: int) -> Campaign:
        return Campaign(arms=["a"], min_group_size=c, seats=20, policy="random")

    assert stores_floor.directory.create("ads", campaign(7))
    assert not stores_floor.directory.create("ads", campaign(7))
    for c in (5, 6, 8):
        with pytest.raises(ProblemError) as caught:
            stores_floor.directory.create("ads", campaign(c))
        assert refusal(caught) == "campaign-exists"
    with pytest.raises(ProblemError) as caught:
        stores_floor.directory.create("other", campaign(4))
    assert refusal(caught) == "below-floor"
    assert stores_floor.directory.campaign("ads").min_group_size == 7
