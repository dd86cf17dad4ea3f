"""What an environment refuses, in one line with name, rule, value and place."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import ArrayLike

from shoal.environments import check_means, make_environment
from shoal.errors import InvalidInputError, UnknownNameError
from shoal.model import Problem

PROBLEM = Problem(n_users=2, n_arms=2, min_group_size=2)
MEANS = np.array([[0.1, 0.2], [0.3, 0.4]])


def refuse(message: str, means: ArrayLike, *, rewards: str = "bernoulli") -> None:
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        make_environment(rewards, PROBLEM, means, rng=np.random.default_rng(0))


@pytest.mark.parametrize("rewards", ["bernoulli", "bounded", "deterministic"])
@pytest.mark.parametrize("value", [1.5, -0.1, np.nan, np.inf])
def test_means_outside_the_unit_interval_are_refused_by_place(rewards: str, value: float) -> None:
    refuse(
        f"the mean of user 1 on arm 0 must be between 0 and 1 for {rewards} rewards; got {value}.",
        [[0.1, 0.2], [value, 0.4]],
        rewards=rewards,
    )


def test_gaussian_means_may_be_any_finite_number() -> None:
    environment = make_environment(
        "gaussian", PROBLEM, [[-3, 7], [0, 1]], rng=np.random.default_rng(0)
    )
    assert environment.means.dtype == np.float64
    refuse(
        "the mean of user 0 on arm 1 must be finite for gaussian rewards; got nan.",
        [[0.1, np.nan], [0.3, 0.4]],
        rewards="gaussian",
    )


def test_means_of_another_shape_are_refused() -> None:
    refuse("means must have shape (2, 2), (n_users, n_arms); got (2, 1).", MEANS[:, :1])
    refuse(
        "means must be a matrix of numbers, (n_users, n_arms); got dtype float64 and shape (2,).",
        [0.1, 0.2],
    )
    refuse(
        "means must be an array; got rows of different lengths.",
        [[0.1, 0.2], [0.3]],
    )


def test_means_that_are_not_numbers_are_refused() -> None:
    refuse(
        "means must be a matrix of numbers, (n_users, n_arms); got dtype <U1 and shape (2, 2).",
        [["a", "b"], ["c", "d"]],
    )


def test_check_means_refuses_what_the_environment_would() -> None:
    assert check_means(MEANS, rewards="bernoulli") is MEANS
    with pytest.raises(InvalidInputError, match="user 0 on arm 0 must be between 0 and 1"):
        check_means(MEANS + 1, rewards="bounded")
    with pytest.raises(UnknownNameError, match="did you mean 'gaussian'"):
        check_means(MEANS, rewards="gausian")


def test_an_unknown_reward_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"known: bernoulli, bounded, determ.*, gaussian\."):
        make_environment("xyz", PROBLEM, MEANS, rng=np.random.default_rng(0))


def test_the_environment_keeps_its_own_means() -> None:
    given = MEANS.copy()
    environment = make_environment("bernoulli", PROBLEM, given, rng=np.random.default_rng(0))
    given[:] = 9.0
    np.testing.assert_array_equal(environment.means, MEANS)
    with pytest.raises(ValueError, match="read-only"):
        environment.means[0, 0] = 1.0


@pytest.mark.parametrize(
    ("participation", "message"),
    [
        (1.5, "participation must be between 0 and 1; got 1.5."),
        (np.nan, "participation must be between 0 and 1; got nan."),
        ([0.5, -0.1], "participation of user 1 must be between 0 and 1; got -0.1."),
        ([0.5], "participation must be one number or n_users=2 of them; got [0.5]."),
        ("all", "participation must be one number or n_users=2 of them; got 'all'."),
    ],
)
def test_participation_that_is_no_probability_is_refused(
    participation: ArrayLike, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        make_environment(
            "bernoulli",
            PROBLEM,
            MEANS,
            rng=np.random.default_rng(0),
            participation=participation,
        )
