"""What a release says, and that it is made once, with all else deleted in the same transaction."""

from __future__ import annotations

import struct
from hashlib import sha256

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, update
from tests.support.service import close, even, frozen, report, start, users

from shoal.service.aggregator import Aggregator, releases
from shoal.service.aggregator.group_sums import Sums
from shoal.service.aggregator.releases import make_release
from shoal.service.campaign import Campaign, Noise
from shoal.service.problems import ProblemError
from shoal.service.store import aggregator as store
from shoal.wire import StoredRelease, Total

PLAN = even(24, size=4, n_arms=2)  # groups 0 to 5 of four users; even ones play a, odd ones b


def campaign(*, least: int = 3, colluders: int = 0, noise: Noise | None = None) -> Campaign:
    return Campaign(
        arms=["a", "b"], min_group_size=least, colluders=colluders, seats=24, reward_steps=10,
        policy="random", noise=noise,
    )  # fmt: skip


def test_nobody_is_taken_for_a_reporter_once_that_is_forgotten(aggregator: Aggregator) -> None:
    """A repeat is then late. NumPy reads unset memory where it unpacks bits of nothing."""
    start(aggregator, even(12, size=4), least=4)
    report(aggregator, dict.fromkeys(users(12), 1.0))
    close(aggregator)
    with aggregator.database.write() as connection:
        connection.execute(update(store.releases).values(reporters=b""))
        round_id = connection.execute(select(store.releases.c.round_id)).scalar_one()
        for _ in range(8):
            np.ones(12, np.uint8)  # so that memory that is used again is not 0
            seats = releases.load_seats(connection, round_id, 12, counted=False)
            assert not seats.any()
    late = report(aggregator, dict.fromkeys(users(12), 1.0))
    assert late == [(place, "late-report") for place in range(12)]


def document(sums: Sums, rules: Campaign | None = None) -> StoredRelease:
    return make_release("news", 1, PLAN, rules or campaign(), sums)


def parts(released: StoredRelease) -> list[tuple[str, tuple[int, ...], int, int]]:
    return [
        (total.arm, tuple(total.parts), total.reporters, total.total) for total in released.totals
    ]


def test_groups_of_at_least_c_reporters_are_released_apart() -> None:
    released = document({0: (12, 3), 1: (7, 4)})
    assert parts(released) == [("a", (0,), 3, 12), ("b", (1,), 4, 7)]
    assert released.withheld == 4  # nobody reported in the others


def test_short_groups_are_merged_inside_their_arm_only() -> None:
    released = document({0: (5, 1), 2: (6, 2), 1: (9, 2), 3: (1, 0)})
    assert parts(released) == [("a", (0, 2), 3, 11)]
    assert released.withheld == 4


def test_colluders_raise_the_number_of_reporters_behind_a_total() -> None:
    assert document({0: (12, 3)}, campaign(colluders=1)).totals == []
    assert len(document({0: (12, 4)}, campaign(colluders=1)).totals) == 1


@pytest.mark.parametrize("total", [-1, 41])
def test_a_sum_that_no_rewards_could_give_is_withheld_with_its_reporters(
    total: int, caplog: pytest.LogCaptureFixture
) -> None:
    released = document({0: (total, 4), 2: (8, 2), 4: (20, 4)})
    assert parts(released) == [("a", (2, 4), 6, 28)]
    assert caplog.messages == ["a sum that no rewards could give is withheld"]


def test_totals_of_all_0_or_all_1_are_counted_where_there_is_no_noise() -> None:
    sums = {0: (0, 4), 1: (40, 4), 2: (39, 4)}
    assert document(sums).homogeneous == 2
    noisy = document(sums, campaign(noise=Noise(epsilon=1.0)))
    assert (noisy.homogeneous, noisy.noise is not None) == (0, True)


@given(counts=st.lists(st.integers(0, 4), min_size=6, max_size=6), least=st.integers(1, 8))
@settings(deadline=None, derandomize=True, max_examples=100)
def test_every_total_has_at_least_c_reporters_and_none_is_in_two(
    counts: list[int], least: int
) -> None:
    released = document(
        {group: (7 * n, n) for group, n in enumerate(counts)}, campaign(least=least)
    )
    merged = [group for total in released.totals for group in total.parts]
    assert len(merged) == len(set(merged)) == 6 - released.withheld
    for total in released.totals:
        assert total.reporters == sum(counts[group] for group in total.parts) >= least
        assert total.total == 7 * total.reporters
        assert {"ab"[group % 2] for group in total.parts} == {total.arm}
    for arm in (0, 1):  # an arm is withheld only where it is short as a whole
        released_reporters = sum(t.reporters for t in released.totals if t.arm == "ab"[arm])
        reporters = sum(counts[arm::2])
        assert released_reporters == (reporters if reporters >= least else 0)


def test_a_release_is_the_same_document_byte_for_byte() -> None:
    released = make_release(
        "news", 3, frozen([0, 0, 1], [0, 0, -1]),
        Campaign(arms=["a", "b"], min_group_size=2, seats=3, policy="random"), {0: (1500, 2)},
    )  # fmt: skip
    assert released.totals == [Total("a", (0,), 2, 1500)]
    plan = sha256(struct.pack("<6i", 0, 0, 1, 0, 0, -1)).hexdigest()
    assert msgspec.json.encode(released).decode() == (
        f'{{"campaign":"news","round":3,"plan":"{plan}","reward_steps":1000,'
        '"totals":[{"arm":"a","parts":[0],"reporters":2,"total":1500}],'
        '"withheld":0,"homogeneous":0,"noise":null,"contested":0}'
    )


def stored(aggregator: Aggregator) -> dict[str, int]:
    """How many rows there are of each kind."""
    tables = (store.reports, store.sum_blocks, store.releases, store.summaries)
    with aggregator.database.read() as connection:
        return {
            table.name: connection.scalar(select(func.count()).select_from(table)) or 0
            for table in tables
        }


def test_marks_and_sums_are_deleted_when_the_release_is_stored(aggregator: Aggregator) -> None:
    start(aggregator, even(12, size=4), least=4)
    report(aggregator, dict.fromkeys(users(12), 0.5))
    assert stored(aggregator) == {"reports": 12, "sum_blocks": 1, "releases": 0, "summaries": 0}
    assert aggregator.releases.close_round("news", 1) is not None
    assert stored(aggregator) == {"reports": 0, "sum_blocks": 0, "releases": 1, "summaries": 2}
    assert aggregator.releases.close_round("news", 1) is None
    assert stored(aggregator)["releases"] == 1


def test_a_release_that_fails_leaves_the_round_open_and_its_sums_as_they_were(
    aggregator: Aggregator, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(aggregator, even(12, size=4), least=4)
    report(aggregator, dict.fromkeys(users(12), 0.5))
    before = stored(aggregator)
    with monkeypatch.context() as patch:
        patch.setattr(releases, "summarise", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            aggregator.releases.close_round("news", 1)
    assert stored(aggregator) == before
    assert aggregator.rounds.get("news", 1).state == "open"
    document = aggregator.releases.close_round("news", 1)
    assert document is not None
    assert [total.total for total in document.totals] == [2000] * 3


def test_those_who_are_counted_reported_and_are_in_a_released_total(
    aggregator: Aggregator,
) -> None:
    start(aggregator, even(12, size=4), least=4)
    report(aggregator, dict.fromkeys([*users(4), *users(8)[6:]], 0.5))  # group 1 is short
    aggregator.releases.close_round("news", 1)
    assert aggregator.releases.counted("news", 1).tolist() == [True] * 4 + [False] * 8


def test_people_see_a_release_once_the_learner_has_it(aggregator: Aggregator) -> None:
    start(aggregator, even(12, size=4), least=4)
    with pytest.raises(ProblemError, match="has not been released"):
        aggregator.releases.read("news", 1)
    aggregator.releases.close_round("news", 1)
    assert aggregator.releases.read("news", 1, to_learner=True).startswith(b'{"campaign":"news"')
    with pytest.raises(ProblemError, match="has not confirmed"):
        aggregator.releases.read("news", 1)
    assert aggregator.releases.shown("news") == 0
