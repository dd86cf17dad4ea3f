from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from shoal.experiments import Price
from shoal.experiments.price.costs import passing_round
from shoal.experiments.price.recommend import passes_in_words


def priced(shares: dict[int, Sequence[float]], *, at_least: int = 2) -> Price:
    """Make a price where each run captured these shares of a gap of 0.1 over a best arm of 0.1."""
    sizes = sorted(shares)
    rewards = np.array([[[0.1 + 0.1 * share] for share in shares[size]] for size in sizes])
    references = np.tile([0.1, 0.2, 0.05], (rewards.shape[1], 1))
    return Price.from_rewards(sizes, rewards, references, np.array([300]), {}, at_least=at_least)


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
        "Use groups of at least 10 users: over 300 rounds they earn 46% (33% to 59%) more than the "
        "best single arm for everyone, 90% of the gain without anonymity; groups of 20 would keep "
        "41% of that gain."
    )
    assert found.notes == []


def test_no_interval_says_that_more_than_all_is_lost() -> None:
    answer = priced({5: [0.5, -0.9]})
    assert answer.costs[0].gain.low < -0.1
    bounded = replace(answer, config={"rewards": "bernoulli"})
    assert bounded.gain_in_words(bounded.costs[0]).startswith("-20% (-100% to ")


def test_the_best_size_may_be_the_largest_or_the_only_one() -> None:
    found = priced({2: [0.30, 0.32], 30: [0.40, 0.42]})
    assert found.recommendation.endswith(
        "41% (28% to 54%) more than the best single arm for everyone."
    )
    assert found.notes[0].startswith("Groups of 30 earn more than groups of 2")
    found = priced({2: [0.30, 0.32], 5: [-0.1, -0.12]})
    assert found.recommendation.startswith("Use groups of at least 2 users: ")
    assert found.recommendation.endswith("for everyone; groups of 5 are not shown to gain.")


def test_groups_below_the_floor_are_compared_but_not_recommended() -> None:
    found = priced({1: [0.50, 0.52], 5: [0.2, 0.22], 10: [0.1, 0.12]}, at_least=5)
    assert found.recommended is found.costs[1]
    assert "41% of the gain without anonymity; groups of 10 are not shown" in found.recommendation
    found = priced({1: [0.3, 0.32], 5: [-0.1, -0.12]})
    assert found.recommended is None
    assert "groups of at least 5 users is not shown" in found.recommendation
    below = priced({1: [0.3, 0.32], 4: [0.3, 0.32]}, at_least=5)
    assert below.recommended is None
    assert "none of the group sizes compared is at least 5" in below.recommendation
    alone = priced({1: [0.3, 0.32]}, at_least=1)
    assert alone.recommendation.startswith("Use groups of at least 1 user: ")


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
    rounds = np.array([10, 20, 30])
    found = Price.from_rewards([2], rewards, references, rounds, {}, at_least=2)
    assert "earn 0.29 a round (0.16 to 0.42) more than the best single arm" in found.recommendation


def test_without_a_gain_that_is_shown_everyone_gets_the_best_arm() -> None:
    found = priced({5: [-0.2, 0.1], 20: [-0.1, 0.0]})
    assert found.recommended is None
    assert found.recommendation == (
        "Show everyone the best single arm: within 300 rounds, learning from groups of at least "
        "5 or 20 users is not shown to earn more (groups of 5: -5%, between -196% and 186%)."
    )
    assert found.to_dict()["recommended"] is None


def test_a_learner_that_is_not_the_default_one_is_named() -> None:
    config = {"policy": "my_policies:EpsilonGreedy"}
    for rewards, words in (
        ([-0.2, 0.1], ", learning with my_policies:EpsilonGreedy from groups of at least 5 users"),
        ([-0.2, 0.6], "groups of at least 5 users with my_policies:EpsilonGreedy earn more"),
        ([0.5, 0.52], "Use groups of at least 5 users with my_policies:EpsilonGreedy: over"),
    ):
        answer = priced({5: rewards})
        assert words in replace(answer, config=config).recommendation
        assert replace(answer, config={"policy": "shoal"}).recommendation == answer.recommendation


def test_sizes_that_gain_but_are_too_small_to_recommend_are_named() -> None:
    answer = priced({2: [0.50, 0.52], 20: [-0.1, -0.12]}, at_least=5)
    assert answer.recommended is None
    assert answer.recommendation.endswith(
        "Groups of 2 do, but are below at_least=5 and only there to compare."
    )
    alike = priced({2: [-0.1, -0.12], 20: [-0.1, -0.12]}, at_least=5)
    assert "only there to compare" not in alike.recommendation


def test_zero_has_no_sign() -> None:
    answer = priced({5: [-0.0004, -0.0005]})
    assert "(0.0%, between -0.1% and 0.0%)" in answer.recommendation
    assert answer.share_in_words(answer.costs[0]) == "0%"


def test_too_few_runs_leave_a_gain_undecided_instead_of_denying_it() -> None:
    answer = priced({5: [-0.2, 0.6], 20: [-0.1, 0.0]})
    assert answer.recommended is None
    assert answer.recommendation == (
        "Undecided: 2 runs are too few to tell whether groups of at least 5 users earn more than "
        "the best single arm for everyone (20%, between -488% and 528%). Play more: n_runs=6, or "
        "leave n_runs out."
    )
    answer = priced({5: [0.0, 0.1, 0.2, 0.3, 0.0]})  # 12% ± 16%; ± 11% with 8
    assert answer.more_runs == 8
    assert "5 runs are too few" in answer.recommendation
    hopeless = priced({5: [-0.3, 0.3, -0.3, 0.3, 0.01]})
    assert hopeless.more_runs is None
    assert hopeless.recommendation.startswith("Show everyone the best single arm: ")
    assert priced({5: [-0.3, 0.5] * 8}).more_runs is None  # 15 runs are the most by default


def test_a_larger_size_is_not_recommended_while_a_better_smaller_one_is_open() -> None:
    answer = priced({5: [0.2, 0.9], 20: [0.3, 0.31]})
    assert answer.costs[0].gain.low < 0 < answer.costs[1].gain.low
    assert answer.recommended is None
    assert answer.recommendation.startswith(
        "Undecided: 2 runs are too few to tell whether groups of at least 5 users"
    )
    kept = priced({5: [0.1, 0.52], 20: [0.3, 0.31]})  # nine tenths of it, whatever it proves to be
    assert kept.recommended is kept.costs[1]
    below = priced({5: [0.2, 0.9], 20: [0.3, 0.31]}, at_least=6)
    assert below.recommended is below.costs[1]


def test_the_share_of_no_gap_is_a_dash() -> None:
    references = np.tile([0.3, 0.3, 0.3], (2, 1))
    answer = Price.from_rewards([5], np.full((1, 2, 1), 0.3), references, np.array([10]), {})
    assert answer.share_in_words(answer.costs[0]) == "–"
    assert "–" in answer._repr_html_()
    some = priced({5: [0.5, 0.5]})
    assert some.share_in_words(some.costs[0]) == "50%"


def test_intervals_of_rewards_stay_between_0_and_1() -> None:
    rewards = np.array([[[0.02], [0.3]], [[0.7], [0.99]]])
    references = np.tile([0.1, 0.9, 0.05], (2, 1))
    config = {"rewards": "bernoulli"}
    found = Price.from_rewards([5, 6], rewards, references, np.array([10]), config)
    for cost in found.costs:
        for interval in (cost.reward, cost.one_population):
            assert 0.0 <= interval.low <= interval.mean <= interval.high <= 1.0
    assert found.costs[0].reward.low == 0.0
    assert found.costs[1].one_population.high == 1.0


def test_homogeneous_totals_are_all_zeros_or_all_ones() -> None:
    rewards = np.full((1, 2, 1), 0.2)
    references = np.tile([0.1, 0.9, 0.05], (2, 1))
    for rewards_of, expected in (("bernoulli", 0.2**5 + 0.8**5), ("bounded", None)):
        config = {"rewards": rewards_of}
        found = Price.from_rewards([5], rewards, references, np.array([10]), config)
        assert found.costs[0].homogeneous == (expected and pytest.approx(expected))


def test_a_price_of_a_rate_is_about_the_average_of_such_populations() -> None:
    for shares, words in (
        ([0.47, 0.49], "over 300 rounds, on average over such populations, they earn 48%"),
        ([-0.1, -0.12], "is not shown to earn more on average over such populations (-11%"),
    ):
        found = priced({5: shares})
        assert "on average" not in found.recommendation
        assert words in replace(found, config={"rate": 0.1}).recommendation


def test_no_passing_round_is_told_where_no_gain_is_shown() -> None:
    shown, hidden = (priced({2: shares}).costs[0] for shares in ([0.4, 0.42], [0.4, -0.3]))
    assert shown.passes_at == hidden.passes_at == 1
    assert passes_in_words(shown, never="never") == "round 1"
    assert passes_in_words(hidden, never="never") == "–"
    assert passes_in_words(priced({2: [-0.4, -0.3]}).costs[0], never="never") == "never"
