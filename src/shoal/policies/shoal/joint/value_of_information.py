"""The value of information: the price that a user would pay for an observation.

The knowledge gradient of docs/theory.md, "The price of information": ``gap`` is d, ``variance`` and
``rival_variance`` are v and v', ``rounds_left`` is L and ``halving`` is rho. The best number n of
observations has a closed form after Frazier and Powell (2010), within 15 % of the best. What a
normal mean would gain beyond the bounds of rewards does not count. Where an arm is hardly ever
better, most tests end early, so that they cost less. A user who may be an outsider pays the price
as either kind, times the chance of being one.

Where fewer users want an arm than a group needs, nothing would ever be learnt about it. So a group
is recruited from all who may play it: the candidate of the highest merit, if there is one whose
total is worth what its members lose.
"""

import math
from typing import NamedTuple

import numpy as np

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.kernels import kernel
from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.joint.posterior import (
    Belief,
    Mixture,
    mixed_moments,
    overdispersion,
    report_rate,
    reward_noise,
    sum_variance,
)


class Prices(NamedTuple):
    """What one shard's users would lose and pay on each arm.

    An arm's rival is the favourite, and the favourite's the second best. Rewards per round.
    """

    favourites: LongArray  # (n_users,) the arm with the highest mean
    losses: FloatArray  # (n_arms, n_users) expected loss against the favourite
    rival_means: FloatArray  # (n_arms, n_users)
    rival_variances: FloatArray  # (n_arms, n_users)
    prices: FloatArray  # (n_arms, n_users) value of one typical observation
    regrets: FloatArray  # (n_users,) expected regret of playing the favourite
    bounded: bool  # whether rewards lie in [0, 1]


class ShardRound(NamedTuple):
    """One shard in one round: all that the merit of a group depends on."""

    belief: Belief
    mixture: Mixture
    prices: Prices
    min_group_size: int
    rounds_left: float
    regret: float  # what all users lose per round as long as nothing is learnt
    by_index: bool  # whether users of crowds of two groups follow their index
    once: LongArray  # (n_users,) of ones, how often each member's reward is in a total
    reporters: LongArray  # (n_users,) workspace
    row: FloatArray  # (n_users,) workspace
    values: FloatArray  # (n_users,) what each would pay for the last total that was valued


class Recruits(NamedTuple):
    """The recruited groups of one shard's thin arms."""

    teams: LongArray  # (n_arms, n_users) the last team, -1 beyond its end
    merits: FloatArray  # (n_arms,) its merit


@kernel()
def expected_improvement(z: float) -> float:
    """Return E[(Z + z)+] of a standard normal Z."""
    density = math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return density + z * 0.5 * math.erfc(-z / math.sqrt(2))


@kernel()
def bounded_improvement(gap: float, both: float, headroom: float, variance: float) -> float:
    """Return E[(min(A, bound) - R)+] of a normal arm A and its rival R, which is below the bound.

    R's mean is ``gap`` higher than A's, ``both`` is the variance of A - R, ``variance`` that of A,
    and ``headroom`` the distance of A's mean from the bound. That is E[(A - R)+] - E[(A - bound)+].
    """
    deviation = math.sqrt(both)
    improvement = deviation * expected_improvement(-gap / deviation)
    deviation = math.sqrt(variance)
    if headroom < JOINT.max_deviations * deviation:
        improvement -= deviation * expected_improvement(-headroom / deviation)
    return max(improvement, 0.0)


@kernel()
def index(mean: float, variance: float, noise: float, rounds_left: float) -> float:
    """Return the known reward that would be as good as an arm of unknown mean.

    That is the finite-horizon Gittins index of a normal mean which is observed with this ``noise``
    in all the rounds that are left, within 4 % of its exact distance from the mean.

    >>> round(index(0.5, 0.04, 1.0, 100.0), 2)  # as good as nine tenths of a deviation more
    0.68
    """
    s = variance * rounds_left / noise
    log = math.log1p(s)
    bonus = math.sqrt(2.0 * math.log1p(s / (5.0 + 1.4 * log + 0.12 * log * log)))
    return mean + bonus * math.sqrt(variance)


@kernel()
def price(
    gap: float,
    headroom: float,
    variance: float,
    rival_variance: float,
    halving: float,
    rounds_left: float,
) -> float:
    """Return the largest loss per round worth paying for observations of one user on one arm.

    ``gap`` is by how much the rival's mean is higher, ``headroom`` by how much the arm's can be
    higher than it seems, and ``halving`` the number of observations, at the present rate, that
    halve ``variance``.
    """
    both = variance + rival_variance
    ratio = gap * gap / both if gap >= 0.0 else 1.0
    if ratio > JOINT.max_deviations * JOINT.max_deviations:
        return 0.0
    n = 0.25 * halving * (ratio - 1.0 + math.sqrt(1.0 + 6.0 * ratio + ratio * ratio))
    n = max(1.0, n)
    if n > 0.5 * rounds_left:
        return 0.0
    known = 1.0 / (1.0 + halving / n)  # of both variances
    if gap > JOINT.max_deviations * math.sqrt(known * both):
        return 0.0
    chance = min(1.0, math.erfc(gap / math.sqrt(2.0 * both)))  # twice that the arm is better
    n_expected = n * (chance + (1.0 - chance) * JOINT.early_end)
    weight = variance / both * (rounds_left - n) / n_expected
    return weight * bounded_improvement(gap, known * both, headroom, known * variance)


@kernel(borrows=True)
def mixed_price(
    mixture: Mixture, prices: Prices, arm: int, user: int, noise: float, rounds_left: float
) -> float:
    """Return the price for observations of a user with this ``noise``, whichever kind it is."""
    rival = prices.rival_means[arm, user]
    value = 0.0
    for kind in range(2):
        chance = mixture.chances[kind, arm, user]
        if chance * rounds_left > JOINT.min_stake:
            variance = mixture.variances[kind, arm, user]
            mean = mixture.means[kind, arm, user]
            gap, headroom = rival - mean, 1.0 - mean
            if arm == prices.favourites[user]:  # an observation pays if it is less than it seems
                gap, headroom = -gap, mean
            if not prices.bounded:
                headroom = math.inf
            other = prices.rival_variances[arm, user]
            value += chance * price(gap, headroom, variance, other, noise / variance, rounds_left)
    return value


@kernel()
def all_prices(
    belief: Belief, mixture: Mixture, allowed: BoolArray, rounds_left: float, bounded: bool
) -> Prices:
    """Return every user's losses and prices on the ``allowed`` arms, (n_arms, n_users)."""
    n_arms, n_users = allowed.shape
    shape = (n_arms, n_users)
    prices = Prices(
        np.zeros(n_users, np.int64), np.full(shape, np.inf), np.zeros(shape), np.zeros(shape),
        np.zeros(shape), np.zeros(n_users), bounded,
    )  # fmt: skip
    for user in range(n_users):
        _fill_prices(belief, mixture, prices, allowed, user, rounds_left)
    return prices


@kernel()
def _fill_prices(
    belief: Belief,
    mixture: Mixture,
    prices: Prices,
    allowed: BoolArray,
    user: int,
    rounds_left: float,
) -> None:
    """Fill one user's part."""
    n_arms = len(belief.means)
    means, variances = np.empty(n_arms), np.empty(n_arms)
    first, second = -1, -1
    for arm in range(n_arms):
        means[arm], variances[arm] = mixed_moments(mixture, arm, user)
        if allowed[arm, user]:
            if first < 0 or means[arm] > means[first]:
                first, second = arm, first
            elif second < 0 or means[arm] > means[second]:
                second = arm
    prices.favourites[user] = max(first, 0)
    for arm in range(n_arms):
        if second < 0 or not allowed[arm, user]:
            continue
        rival = second if arm == first else first
        prices.losses[arm, user] = means[first] - means[arm]
        prices.rival_means[arm, user] = means[rival]
        prices.rival_variances[arm, user] = variances[rival]
        prices.prices[arm, user] = mixed_price(
            mixture, prices, arm, user, belief.noise[arm], rounds_left
        )
        if arm != first:
            regret = _regret(mixture, prices, arm, user)
            prices.regrets[user] = max(prices.regrets[user], regret)
    if first >= 0:
        prices.losses[first, user] = 0.0


@kernel(borrows=True)
def _regret(mixture: Mixture, prices: Prices, arm: int, user: int) -> float:
    """Return what a user who plays its favourite is expected to lose against ``arm``."""
    regret = 0.0
    for kind in range(2):
        mean, variance = mixture.means[kind, arm, user], mixture.variances[kind, arm, user]
        both = variance + prices.rival_variances[arm, user]
        gap = prices.rival_means[arm, user] - mean
        chance = mixture.chances[kind, arm, user]
        headroom = 1.0 - mean if prices.bounded else math.inf
        regret += chance * bounded_improvement(gap, both, headroom, variance)
    return regret


@kernel(borrows=True)
def value_of_total(this_round: ShardRound, arm: int, members: LongArray, noise: float) -> float:
    """Return what all users together would pay for the total of ``members`` on ``arm``.

    A total tells about everyone whose mean is correlated with the members' sum: it removes the
    share row_i² / (variance of the total · variance_i) of a user's variance. What counts is that
    share, not how many users are on the arm. ``this_round.values`` says who would pay how much.
    """
    prices, rounds_left, row = this_round.prices, this_round.rounds_left, this_round.row
    covariance = this_round.belief.covariances[arm]
    total_variance = sum_variance(covariance, members, this_round.once, row) + noise
    values = this_round.values
    values[:] = 0.0
    for user in range(len(row)):
        variance = covariance[user, user]
        share = row[user] * row[user] / (total_variance * variance)
        if share * rounds_left > 1.0 and prices.losses[arm, user] < np.inf:
            noise = (1.0 / share - 1.0) * variance  # of an observation of this user alone
            values[user] = mixed_price(this_round.mixture, prices, arm, user, noise, rounds_left)
    return float(values.sum())


@kernel(borrows=True)
def merit(this_round: ShardRound, arm: int, members: LongArray, rng: np.random.Generator) -> float:
    """Return value / (cost + regret) of a group's total; 0 if it is not worth its cost.

    Where not everyone reports, a random set of reporters stands for the group: who reports is
    random, and that separates members who are never left out on purpose. A group that is too small
    to be released alone counts for its part of a merged total.
    """
    belief, prices = this_round.belief, this_round.prices
    rate = report_rate(belief)
    reporters = this_round.reporters
    n, cost, noise = 0, 0.0, 0.0
    for index in range(len(members)):
        member = members[index]
        cost += prices.losses[arm, member]
        needed = len(members) - index <= this_round.min_group_size - n
        if rate >= 1.0 or needed or rng.random() < rate:
            noise += reward_noise(
                belief.means[arm, member], belief.covariances[arm, member, member]
            )
            reporters[n] = member
            n += 1
    noise *= overdispersion(belief)
    part = min(1.0, rate * len(members) / n)
    value = part * value_of_total(this_round, arm, reporters[:n], noise)
    for user in range(len(this_round.values)):
        this_round.values[user] *= part
    return value / (cost + this_round.regret) if value > cost else 0.0


@kernel()
def best_returns(costs: FloatArray, values: FloatArray, regrets: FloatArray) -> BoolArray:
    """Return which groups pay now, (n_groups,), and are not to wait until others have been formed.

    User i would pay ``values[g, i]`` for the total of group g. Who loses ``regrets[i]`` a round by
    not knowing more, and whose part of the groups' ``costs`` is c, buys a value of v with them: a
    return of v / (regret + c). A group pays if its values, each over its user's return, make up
    its cost. What costs nothing always pays.
    """
    pays = np.ones(len(costs), np.bool_)
    worth = np.empty(len(costs))
    for group in range(len(costs)):
        worth[group] = values[group].sum()
    returns = np.empty(len(regrets))
    n_left = len(costs) + 1
    while pays.sum() < n_left:
        n_left = pays.sum()
        for user in range(len(regrets)):
            value, cost = 0.0, regrets[user]
            for group in range(len(costs)):
                if pays[group] and costs[group] > 0.0 and values[group, user] > 0.0:
                    value += values[group, user]
                    cost += costs[group] * values[group, user] / worth[group]
            returns[user] = max(1.0, value / cost) if cost > 0.0 else 1.0
        for group in range(len(costs)):
            if pays[group] and costs[group] > 0.0:
                pays[group] = (values[group] / returns).sum() >= costs[group] * (1.0 - 1e-9)
    return pays


@kernel()
def recruit(
    this_round: ShardRound,
    arm: int,
    free: BoolArray,
    last_team: LongArray,
    team: LongArray,
    rng: np.random.Generator,
) -> float:
    """Fill ``team`` with the best candidate among ``free`` users; return its merit.

    ``last_team`` may start with -1 where there is none.
    """
    size = len(team)
    candidate = np.empty(size, np.int64)
    users = np.flatnonzero(free)
    again = last_team[0] >= 0
    for member in last_team:
        again = again and free[member]
    best = 0.0
    for attempt in range(JOINT.n_candidates):
        if attempt == 0:
            if not again:
                continue
            candidate[:] = last_team
        elif attempt == 1:
            candidate[:] = _highest_gains(this_round.prices, arm, users, size, rng)
        elif attempt == 2:
            candidate[:] = _one_and_cheapest(this_round.prices, arm, users, size, rng)
        elif best > 0.0 or again:
            candidate[:] = team if best > 0.0 else last_team
            new = users[rng.integers(0, len(users))]
            if (candidate == new).any():
                continue
            candidate[rng.integers(0, size)] = new
        else:
            break
        candidate_merit = merit(this_round, arm, candidate, rng)
        if candidate_merit > best:
            best = candidate_merit
            team[:] = candidate
    return best


@kernel()
def _highest_gains(
    prices: Prices, arm: int, users: LongArray, size: int, rng: np.random.Generator
) -> LongArray:
    """Return those who gain most, net of what they lose, with random weights."""
    keys = np.empty(len(users))
    for index, user in enumerate(users):
        weight = -math.log(1e-12 + rng.random())
        keys[index] = prices.losses[arm, user] - weight * prices.prices[arm, user]
    return users[np.argsort(keys)[:size]]


@kernel()
def _one_and_cheapest(
    prices: Prices, arm: int, users: LongArray, size: int, rng: np.random.Generator
) -> LongArray:
    """Return one who gains, and those who lose least by helping."""
    keys = np.empty(len(users))
    chosen, highest = 0, -1.0
    for index, user in enumerate(users):
        keys[index] = (prices.losses[arm, user] + JOINT.small_loss) * (0.5 + rng.random())
        gain = -prices.prices[arm, user] * math.log(1e-12 + rng.random())
        if gain > highest:
            chosen, highest = index, gain
    keys[chosen] = -1.0
    return users[np.argsort(keys)[:size]]
