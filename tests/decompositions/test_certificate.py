import numpy as np
import pytest

from shoal.decompositions import Decomposition, is_decomposition
from shoal.errors import InvalidInputError

ACTIVE = np.array([[True, True], [True, True], [True, True], [False, True]])
ROWS = np.array([[0, 0, 0, 1], [1, 1, 1, 1]])


def test_accepts_what_meets_the_demand_and_reports_its_size() -> None:
    certificate = is_decomposition(ACTIVE, 4, Decomposition(ROWS, np.array([2, 4])), min_crowd=3)
    assert certificate
    assert (certificate.smallest_crowd, certificate.ratio) == (1, 1.5)


def test_counts_repeats() -> None:
    assert is_decomposition(ACTIVE, 4, ROWS, [2, 4], min_crowd=3)
    assert is_decomposition(ACTIVE, 4, np.repeat(ROWS, [2, 4], axis=0), min_crowd=3)


def test_names_the_pair_that_gets_too_little() -> None:
    certificate = is_decomposition(ACTIVE, 4, ROWS, [1, 4], min_crowd=3)
    assert not certificate
    assert certificate.reason == "user 0 needs 2 informative assignments on arm 0; got 1."


def test_a_crowd_below_the_least_is_not_informative() -> None:
    certificate = is_decomposition(ACTIVE, 4, ROWS, [2, 4], min_crowd=4)
    assert certificate.reason == "user 0 needs 2 informative assignments on arm 0; got 0."


def test_rounds_a_broken_demand_up() -> None:
    three = np.ones((3, 3), bool)
    rows = np.repeat(np.eye(3, dtype=int).argmax(axis=1)[:, None], 3, axis=1)
    assert is_decomposition(three, 3, rows, min_crowd=3)
    assert not is_decomposition(three, 4, rows, min_crowd=3)


def test_refuses_an_arm_that_is_not_active() -> None:
    rows = ROWS.copy()
    rows[0, 3] = 0
    certificate = is_decomposition(ACTIVE, 4, rows, [2, 4], min_crowd=3)
    assert certificate.reason == "user 3 must play an active arm; got arm 0."
    rows[0, 3] = 2
    certificate = is_decomposition(ACTIVE, 4, rows, [2, 4], min_crowd=3)
    assert certificate.reason == "user 3 must play an arm between 0 and 1; got 2."


def test_refuses_negative_repeats() -> None:
    assert (
        "repeats must be at least 0"
        in is_decomposition(ACTIVE, 4, np.vstack([ROWS, ROWS]), [4, 4, -1, 0], min_crowd=3).reason
    )


def test_refuses_shapes_that_do_not_fit() -> None:
    with pytest.raises(InvalidInputError, match="assignments must have shape"):
        is_decomposition(ACTIVE, 4, ROWS[:, :3], min_crowd=3)
    with pytest.raises(InvalidInputError, match="repeats must not be given"):
        is_decomposition(ACTIVE, 4, Decomposition(ROWS, np.array([1, 1])), [1, 1], min_crowd=3)
