from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.service.merging import merge

groups = st.dictionaries(
    st.integers(0, 40), st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=25
)


@given(groups, st.integers(1, 10))
@settings(deadline=None, derandomize=True, max_examples=300)
def test_every_reporter_is_in_one_large_enough_total_of_the_arm_wherever_one_can_be(
    drawn: dict[int, tuple[int, int]], least: int
) -> None:
    reporters = {group: n for group, (n, _) in drawn.items()}
    arms = {group: arm for group, (_, arm) in drawn.items()}
    released, withheld = merge(reporters, arms, least=least)
    parts = [part for total in released for part in total.parts]
    assert sorted([*parts, *withheld]) == sorted(drawn)  # each group once, somewhere
    for total in released:
        assert total.reporters == sum(reporters[part] for part in total.parts) >= least
        assert {arms[part] for part in total.parts} == {total.arm}
        assert all(reporters[part] > 0 for part in total.parts)
        whole = [part for part in total.parts if reporters[part] >= least]
        assert len(whole) <= 1  # groups that need no help stay apart
    for arm in set(arms.values()):
        present = sum(n for group, n in reporters.items() if arms[group] == arm)
        told = sum(total.reporters for total in released if total.arm == arm)
        assert told == (present if present >= least else 0)


@given(groups, st.integers(1, 10))
@settings(deadline=None, derandomize=True)
def test_the_order_of_groups_does_not_matter(drawn: dict[int, tuple[int, int]], least: int) -> None:
    reporters = {group: n for group, (n, _) in drawn.items()}
    arms = {group: arm for group, (_, arm) in drawn.items()}
    backwards = dict(reversed(reporters.items()))
    assert merge(backwards, arms, least=least) == merge(reporters, arms, least=least)
