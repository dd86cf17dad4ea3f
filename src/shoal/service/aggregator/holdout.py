"""A holdout: users drawn at random, once, who play the best arm so far instead of one of their own.

What they get is an unbiased reference for what personalisation gives: nothing of the policy's model
is in it, and the policy learns nothing of them. They are drawn with the campaign, by seat, so that
nobody chooses them and a user who comes back is where he was. They play one arm, and are counted
with each other only, in groups of at least C like everyone.

How far two means differ by chance depends on how users differ, which totals over groups drawn again
in every round can't show. So those held out are also in blocks that stay: a binary tree whose root
is everyone and whose leaves, ``N_BLOCKS`` of them, are drawn with the holdout. A round is counted
at the finest level at which a block has ``BLOCK_GROUPS`` times C users. Where a block has too few
reporters, its groups join others', and the total belongs to the block that has all of them.
"""

import secrets
from typing import NamedTuple

import numpy as np

from shoal.arrays import BoolArray, IntArray, LongArray, WholeArray
from shoal.model.merging import merge_short

N_BLOCKS = 16
BLOCK_GROUPS = 3  # so that a block has groups, and reporters, to spare

NO_BLOCKS: WholeArray = np.empty(0, np.int8)
"""Each seat's block, -1 for one that is not held out, (n_seats,): empty without a holdout."""


class Crowds(NamedTuple):
    """With whom each seat may be counted, in one round."""

    numbers: IntArray  # (n_seats,) the arm, or ``n_arms`` and the block; -1 where absent
    n_arms: int

    def of_groups(self, groups: IntArray) -> LongArray:
        """Return each group's crowd, -1 for a number that no group has, (n_groups,)."""
        crowds = np.full(groups.max(initial=-1) + 1, -1, np.int64)
        grouped = groups >= 0
        crowds[groups[grouped]] = self.numbers[grouped]
        return crowds


def draw_blocks(n_seats: int, n_held_out: int) -> WholeArray:
    """Draw who is held out, and in which block."""
    blocks: WholeArray = np.full(n_seats, -1, np.int8)
    rng = np.random.default_rng(secrets.randbits(128))
    seats = rng.permutation(n_seats)[:n_held_out]
    blocks[seats] = np.arange(n_held_out) % N_BLOCKS
    return blocks


def held_out(blocks: WholeArray, n_seats: int) -> BoolArray:
    """Return which seats are held out, (n_seats,)."""
    return blocks >= 0 if blocks.size else np.zeros(n_seats, bool)


def crowds_of(arms: IntArray, blocks: WholeArray, n_arms: int, min_reporters: int) -> Crowds:
    """Return with whom each seat may be counted; ``arms`` are -1 for those absent.

    >>> arms, blocks = np.zeros(5, np.int32), np.array([-1, 0, 15, 3, -1], np.int8)
    >>> crowds_of(arms, blocks, 2, 1).numbers  # three are held out, too few for two blocks
    array([0, 3, 3, 3, 0], dtype=int32)
    """
    if not blocks.size:
        return Crowds(arms, n_arms)
    present = (arms >= 0) & (blocks >= 0)
    n_blocks = N_BLOCKS
    while n_blocks > 1 and present.sum() // n_blocks < BLOCK_GROUPS * min_reporters:
        n_blocks //= 2
    places = n_blocks + blocks.astype(np.int32) // (N_BLOCKS // n_blocks)
    return Crowds(np.where(present, n_arms + places, arms), n_arms)


def merge_groups(
    reporters: LongArray, crowds: LongArray, min_reporters: int, n_arms: int
) -> LongArray:
    """Return with which group each group is released, as ``merge_short``.

    Blocks that are too small by themselves are merged with each other.
    """
    into = merge_short(reporters, crowds, min_reporters)
    left = np.flatnonzero((into < 0) & (crowds >= n_arms))
    if left.size:
        again = merge_short(reporters[left], np.zeros(left.size, np.int64), min_reporters)
        into[left] = np.where(again < 0, again, left[again])
    return into


def common_block(places: LongArray) -> int:
    """Return the smallest block that holds all of these.

    >>> common_block(np.array([9])), common_block(np.array([8, 9])), common_block(np.array([8, 15]))
    (9, 4, 1)
    """
    blocks = {int(place) for place in places}
    while len(blocks) > 1:
        largest = max(blocks)
        blocks = (blocks - {largest}) | {largest // 2}
    return blocks.pop()
