"""Who is counted with whom, where the aggregator decides: a draw that the learner can't foresee.

A learner proposes arms and groups. With ``grouping = "aggregator"`` only the sizes of its groups
are followed: everyone who plays an arm is put into groups of about that size at random, so that no
plan can choose anyone's company. What is left to a learner are the arms. The users of an arm that
make one group only *are* chosen, as when a learner recruits users for an arm that too few want. So
such a group is left out where it differs by fewer than C users from too many earlier ones
(``near_repeats``): their totals would show the few.

Where the learner must choose the groups (``grouping = "learner"``), the same limit holds for each
of them, and those that it left out are put into groups of their own (``measure``).

The draw is keyed: nobody foresees it without the store's key, and after a crash it is the same.
"""

from collections.abc import Iterable

import numpy as np

from shoal.arrays import IntArray, LongArray, WholeArray
from shoal.service.aggregator.holdout import NO_BLOCKS, crowds_of, held_out
from shoal.service.campaign import Campaign

WINDOW = 20  # rounds back in which near repeats are looked for


def draw(
    arms: IntArray,
    proposed: IntArray,
    campaign: Campaign,
    *,
    seed: bytes,
    earlier: Iterable[IntArray] = (),
    blocks: WholeArray = NO_BLOCKS,
) -> IntArray:
    """Return each seat's group, -1 for none, (n_seats,).

    Parameters
    ----------
    arms, proposed
        Each seat's arm, -1 for one that is not in the round, and the learner's group.
    seed
        Of the draw.
    earlier
        Each seat's group in rounds before, newest first.
    blocks
        Who is held out: whatever the learner asks for, they are counted with each other only.
    """
    rng = np.random.default_rng(int.from_bytes(seed, "little"))
    by_learner = campaign.grouping != "aggregator"
    groups = proposed.copy() if by_learner else np.full(len(arms), -1, np.int32)
    apart = held_out(blocks, len(arms))
    proposed = np.where(apart, -1, proposed).astype(np.int32)
    groups[apart] = -1
    crowds = crowds_of(arms, blocks, campaign.n_arms, campaign.min_reporters).numbers
    measured = (arms >= 0) & ((proposed >= 0) | (campaign.measure == "all") | apart)
    _fill(groups, np.where(measured, crowds, -1), proposed, campaign.min_reporters, rng)
    if campaign.near_repeats is not None:
        chosen = _alone(groups, crowds)
        if by_learner:
            chosen = np.union1d(proposed[proposed >= 0], np.intersect1d(chosen, groups[apart]))
        _leave_out(groups, chosen.astype(np.int64), campaign, earlier)
    return groups


def _fill(
    groups: IntArray, arms: IntArray, proposed: IntArray, min_size: int, rng: np.random.Generator
) -> None:
    """Put everyone who is in no group, and can be, into new groups of about the proposed size."""
    sizes = _group_sizes(arms, proposed, min_size)
    following = int(groups.max(initial=-1)) + 1
    free = rng.permutation(np.flatnonzero((groups < 0) & (arms >= 0)))
    if not free.size:
        return
    free = free[np.argsort(arms[free], kind="stable")]
    ends = np.cumsum(np.bincount(arms[free], minlength=len(sizes)))
    for arm, users in enumerate(np.split(free, ends[:-1])):
        n_groups = len(users) // int(sizes[arm]) or int(len(users) >= min_size)
        if n_groups:
            place = np.arange(len(users)) % n_groups
            groups[users] = (following + place).astype(np.int32)
            following += n_groups


def _group_sizes(arms: IntArray, proposed: IntArray, min_size: int) -> LongArray:
    """Return the mean size of each arm's proposed groups, of all where it has none, (n_arms,)."""
    n_arms = int(arms.max(initial=-1)) + 1
    grouped = (proposed >= 0) & (arms >= 0)
    users = np.bincount(arms[grouped], minlength=n_arms)
    arm_of = np.full(int(proposed.max(initial=-1)) + 1, -1)
    arm_of[proposed[grouped]] = arms[grouped]
    n_groups = np.bincount(arm_of[arm_of >= 0], minlength=n_arms)
    usual = users.sum() / max(1, n_groups.sum())
    means = np.where(n_groups > 0, users / np.maximum(1, n_groups), usual)
    return np.maximum(min_size, np.rint(means)).astype(np.int64)


def _alone(groups: IntArray, arms: IntArray) -> LongArray:
    """Return the groups that are the only ones of their arm."""
    arm_of = np.full(int(groups.max(initial=-1)) + 1, -1)
    arm_of[groups[groups >= 0]] = arms[groups >= 0]
    n_groups = np.bincount(arm_of[arm_of >= 0], minlength=1)
    return np.flatnonzero((arm_of >= 0) & (n_groups[arm_of] == 1))


def _leave_out(
    groups: IntArray, chosen: LongArray, campaign: Campaign, earlier: Iterable[IntArray]
) -> None:
    """Take out each chosen group that is near to more than ``near_repeats`` earlier ones."""
    near = np.zeros(len(chosen), np.int64)
    members = [np.flatnonzero(groups == group) for group in chosen.tolist()]
    for before in earlier if len(chosen) else ():
        sizes = np.bincount(before[before >= 0], minlength=1)
        for index, users in enumerate(members):
            shared = before[users]
            overlap = np.bincount(shared[shared >= 0], minlength=len(sizes))
            touched = np.flatnonzero(overlap)
            differ = len(users) + sizes[touched] - 2 * overlap[touched]
            near[index] += ((differ > 0) & (differ < campaign.min_reporters)).sum()
    assert campaign.near_repeats is not None
    for index in np.flatnonzero(near > campaign.near_repeats).tolist():
        groups[members[index]] = -1
