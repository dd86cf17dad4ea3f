"""The page of typical cases says which gains are shown, and nothing of "-0%"."""

from __future__ import annotations

import pytest
from benchmarks.cases import in_figure, in_table

from shoal.experiments.statistics import Interval


@pytest.mark.parametrize(
    ("gain", "text"),
    [
        (Interval(0.2, 0.1, 0.3), "+20%"),
        (Interval(0.2, -0.1, 0.5), "+20% ?"),
        (Interval(-0.2, -0.5, 0.1), "-20% ?"),
        (Interval(-0.2, -0.3, -0.1), "-20%"),
        (Interval(-0.001, -0.02, 0.02), "0% ?"),
    ],
)
def test_a_question_mark_stands_wherever_the_interval_holds_0(gain: Interval, text: str) -> None:
    assert in_figure(gain, 1.0) == text


def test_bounds_that_round_to_0_have_one_more_decimal() -> None:
    assert in_table(Interval(0.14, 0.004, 0.27), 1.0) == "+14% (+0.4% to +27%)"
    assert in_table(Interval(-0.001, -0.003, 0.0001), 1.0) == "0% (-0.3% to 0%)"
