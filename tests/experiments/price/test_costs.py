from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.experiments import Price
from shoal.experiments.price.costs import passing_round


def priced(shares: dict[int, Sequence[float]]) -> Price:
    """Make a price where each run captured these shares of a gap of 0.1 over a best arm of 0.1."""
    sizes = sorted(shares)
    rewards = np.array([[[0.1 + 0.1 * share] for share in shares[size]] for size in sizes])
    references = np.tile([0.1, 0.2, 0.05], (rewards.shape[1], 1))
    return Price.from_rewards(sizes, rewards, references, np.array([300]), {})


def test_passing_is_for_good() -> None:
    rounds = np.array([10, 20, 30])
    assert passing_round(np.array([3.0, 3.0, 3.0]), 2.0, rounds) == 1
    assert passing_round(np.array([1.0, 3.0, 3.0]), 2.0, rounds) == 11
    assert passing_round(np.array([3.0, 1.0, 3.0]), 2.0, rounds) == 21
    assert passing_round(np.array([3.0, 3.0, 1.0]), 2.0, rounds) is None


def test_the_largest_size_that_keeps_nine_tenths_of_the_gain_is_recommended() -> None:
    found = priced({1: [0.50, 0.52], 5: [0.47, 0.49], 10: [0.45, 0.47], 20: [0.2, 0.22]})
    assert found.recommended is found.costs[2]
    assert found.recommendation == (
        "Use groups of at least 10 users: over 300 rounds they earn 46% more than the best single "
        "arm for everyone, 90% of the gain without anonymity; groups of 20 would keep 41%."
    )
    assert found.notes == []


def test_the_best_size_may_be_the_largest_or_the_only_one() -> None:
    found = priced({2: [0.30, 0.32], 30: [0.40, 0.42]})
    assert found.recommendation.endswith("41% more than the best single arm for everyone.")
    assert found.notes[0].startswith("Groups of 30 earn more than groups of 2")
    found = priced({2: [0.30, 0.32], 5: [-0.1, -0.12]})
    assert found.recommendation.startswith("Use groups of at least 2 users: ")
    assert found.recommendation.endswith("for everyone; groups of 5 would keep 0%.")


def test_a_group_of_one_is_recommended_only_where_there_is_nothing_else() -> None:
    found = priced({1: [0.50, 0.52], 5: [0.2, 0.22], 10: [0.1, 0.12]})
    assert found.recommended is found.costs[1]
    assert "41% of the gain without anonymity; groups of 10 would keep" in found.recommendation
    found = priced({1: [0.3, 0.32], 5: [-0.1, -0.12]})
    assert found.recommended is None
    assert "groups of at least 5 users is not shown" in found.recommendation
    assert priced({1: [0.3, 0.32]}).recommendation.startswith("Use groups of at least 1 user: ")


def test_equal_arms_have_no_gap_whatever_the_rounding() -> None:
    references = np.array([[0.3, 0.3 + 5e-17, 0.3], [0.1 + 0.2, 0.3, 0.3]])
    rewards = np.full((1, 2, 3), 0.1 + 0.2)
    found = Price.from_rewards([2], rewards, references, np.array([10, 20, 30]), {})
    assert found.costs[0].share.mean == 0
    assert found.costs[0].passes_at is None
    assert found.recommended is None


def test_a_gain_on_a_loss_is_told_as_a_difference() -> None:
    references = np.array([[-0.5, -0.1, -0.6]] * 2)
    rewards = np.array([[[-0.2] * 3, [-0.22] * 3]])
    found = Price.from_rewards([2], rewards, references, np.array([10, 20, 30]), {})
    assert "earn 0.29 a round more than the best single arm" in found.recommendation


def test_without_a_gain_that_is_shown_everyone_gets_the_best_arm() -> None:
    found = priced({5: [-0.2, 0.6], 20: [-0.1, 0.0]})
    assert found.recommended is None
    assert found.recommendation == (
        "Show everyone the best single arm: within 300 rounds, learning from groups of at least "
        "5, 20 users is not shown to earn more."
    )
    assert found.to_dict()["recommended"] is None
