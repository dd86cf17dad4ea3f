"""Which arm is worth playing for a while: the value of a block of plays, user by user.

*Block lookahead*: a user who plays arm a for the next s of R rounds loses s times its gap to the
favourite g, and then knows more. By then the posterior mean of o has moved against that of g by an
amount of deviation d = |S_oa - S_ga| / sqrt(S_aa + noise / s), S being the posterior covariance;
switching to the best of them gains about max over o of E[(d t - gap_o)+]. So

    value(a, s) = (R - s) max_o d E[(t - gap_o / d)+] - s gap_a

and the user plays the arm of the highest value over blocks of a few lengths, or the favourite if
none is worth it. (Posterior samples explore more than pays off here, as the rounds are few.)

The prior is normal because that can be reckoned with; people are not. Some like what nobody like
them does, and in the long run it is they who cost the most if their arm is never tried. So t has
the heaviest tail of Student's that still has a variance (three degrees of freedom, scaled to 1),
for which E[(t - u)+] = (1 - u arctan(1 / u)) / pi.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.arrays import BoolArray, FloatArray, IntArray, SmallFloatArray
from shoal.grouping.random_groups import draw
from shoal.kernels import kernel
from shoal.policies.shoal.population.posterior import Posterior, Prior, infer, room

BLOCKS = np.array([0.03, 0.1, 0.3])  # lengths looked at, as shares of the rounds left
ENOUGH = np.array([1.0, 3.0, 10.0])  # or as times what halves the doubt, if that is less
FINEST = 64  # entries per unit in the table of E[(t - u)+]
FARTHEST = 16.0  # beyond so many deviations, nothing is expected
PLACES = np.arange(0.0, FARTHEST + 0.5, 1 / FINEST)
EXCESS = (1 - PLACES * np.arctan2(1, PLACES)) / math.pi


@kernel(fastmath=True)
def decide(
    prior: Prior,
    precision: SmallFloatArray,
    value: SmallFloatArray,
    allowed: BoolArray,
    turns: SmallFloatArray,
    panel: float,
    sent: IntArray,
    noise: FloatArray,
    left: float,
    phase: int,
    every: int,
    seed: np.uint64,
    arms: IntArray,
    predicted: SmallFloatArray,
    variances: SmallFloatArray,
) -> None:
    """Fill the arms of the users whose turn it is, and what is believed of their means there.

    Parameters
    ----------
    turns, panel
        Users whose number in [0, 1) is below ``panel`` play a random arm, each round anew.
    sent
        The arm that a user must play, -1 for those who may choose, (n_users,); or nothing.
    noise
        By how much a total is noisier than one reward's b(1 - b), (n_arms,).
    phase, every
        Others decide in one of ``every`` rounds, or if they may not play their arm any more. A
        user who may play nothing gets the arm -1.
    """
    n_users, n_arms = precision.shape
    posterior = room(n_arms, prior.factors.shape[1])
    covariance = np.empty((n_arms, n_arms))
    for user in range(n_users):
        able = allowed[user]
        n_able = 0
        for arm in range(n_arms):
            n_able += able[arm]
        if n_able == 0:
            arms[user] = -1
            continue
        told = sent[user] if len(sent) else -1
        explores = told >= 0 or turns[user] < panel
        old = arms[user]
        if not (explores or old < 0 or (user + phase) % every == 0 or not able[old]):
            continue
        infer(prior, precision[user], value[user], posterior)
        if told >= 0:
            chosen = told
        elif explores:
            chosen = _pick(able, draw(seed, user, n_able))
        else:
            chosen = _look_ahead(prior, posterior, able, noise, left, covariance)
        _settle(user, chosen, posterior, arms, predicted, variances)


@kernel()
def never_unseen(
    prior: Prior,
    precision: SmallFloatArray,
    value: SmallFloatArray,
    allowed: BoolArray,
    min_group_size: int,
    arms: IntArray,
    predicted: SmallFloatArray,
    variances: SmallFloatArray,
) -> None:
    """Send explorers in crowds that are too small for a group back to their favourites."""
    n_arms = len(prior.means)
    crowds = np.zeros(n_arms + 1, np.int64)  # the last is of those who play nothing
    for arm in arms:
        crowds[arm] += 1
    if crowds[:-1].min() >= min_group_size:
        return
    posterior = room(n_arms, prior.factors.shape[1])
    for user in range(len(arms)):
        arm = arms[user]
        if arm < 0 or crowds[arm] >= min_group_size:
            continue
        infer(prior, precision[user], value[user], posterior)
        favourite = _favourite(posterior, allowed[user])
        if favourite != arm:
            crowds[arm] -= 1
            crowds[favourite] += 1
            _settle(user, favourite, posterior, arms, predicted, variances)


@kernel()
def _settle(
    user: int,
    arm: int,
    posterior: Posterior,
    arms: IntArray,
    predicted: SmallFloatArray,
    variances: SmallFloatArray,
) -> None:
    """Let the user play ``arm``, and note what is believed of it."""
    arms[user] = arm
    predicted[user] = posterior.means[arm]
    variance = posterior.own[arm]
    for a in range(posterior.loads.shape[1]):
        variance += posterior.loads[arm, a] ** 2
    variances[user] = variance


@kernel()
def _favourite(posterior: Posterior, able: BoolArray) -> int:
    """Return the arm of the highest mean among those that the user may play."""
    favourite = -1
    for arm in range(len(able)):
        if able[arm] and (favourite < 0 or posterior.means[arm] > posterior.means[favourite]):
            favourite = arm
    return favourite


@kernel()
def _pick(able: BoolArray, place: int) -> int:
    """Return the arm at ``place`` among those that the user may play."""
    chosen = -1
    for arm in range(len(able)):
        if able[arm]:
            if place == 0:
                chosen = arm
            place -= 1
    return chosen


@kernel(fastmath=True)
def _look_ahead(
    prior: Prior,
    posterior: Posterior,
    able: BoolArray,
    noise: FloatArray,
    left: float,
    covariance: FloatArray,
) -> int:
    """Return the arm of the most valuable block; ``covariance`` is room to reckon in."""
    means, loads, own = posterior.means, posterior.loads, posterior.own
    n_arms, rank = loads.shape
    favourite = _favourite(posterior, able)
    for arm in range(n_arms):
        for other in range(arm + 1):
            shared = 0.0
            for a in range(rank):
                shared += loads[arm, a] * loads[other, a]
            covariance[arm, other] = shared
            covariance[other, arm] = shared
        covariance[arm, arm] += own[arm]
    chosen, highest = favourite, 0.0
    for arm in range(n_arms):
        if not able[arm]:
            continue
        gap = means[favourite] - means[arm]
        total_noise = noise[arm] * prior.means[arm] * (1.0 - prior.means[arm])
        halving = total_noise / covariance[arm, arm]
        for length in range(len(BLOCKS)):
            block = max(min(BLOCKS[length] * left, ENOUGH[length] * halving), 1.0)
            if block > left:
                continue
            per_deviation = 1.0 / math.sqrt(covariance[arm, arm] + total_noise / block)
            gain = 0.0
            for other in range(n_arms):
                if other == favourite or not able[other]:
                    continue
                moved = abs(covariance[other, arm] - covariance[favourite, arm]) * per_deviation
                behind = means[favourite] - means[other]
                if moved * FARTHEST > behind:
                    gain = max(gain, moved * _excess(behind / moved))
            worth = (left - block) * gain - block * gap
            if worth > highest:
                chosen, highest = arm, worth
    return chosen


@kernel()
def _excess(threshold: float) -> float:
    """Return E[(t - threshold)+], between two entries of the table."""
    place = threshold * FINEST
    below = int(place)
    part = place - below
    return float(EXCESS[below] * (1.0 - part) + EXCESS[below + 1] * part)
