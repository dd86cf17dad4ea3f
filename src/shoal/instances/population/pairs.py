"""What a fit needs of a log: for each pair of user and arm, rows, sum and sum of squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.arrays import FloatArray, LongArray


@dataclass(frozen=True, slots=True, eq=False)
class PairTotals:
    """Totals of the rewards of every pair, each (n_users, n_arms)."""

    counts: FloatArray
    sums: FloatArray
    squares: FloatArray

    @classmethod
    def from_rows(
        cls, users: LongArray, arms: LongArray, rewards: FloatArray, shape: tuple[int, int]
    ) -> PairTotals:
        """Add up rows of user, arm (places from 0) and reward.

        NumPy adds in the order of the rows: the same bytes on any number of cores.

        >>> users, arms = np.array([0, 0]), np.array([1, 1])
        >>> PairTotals.from_rows(users, arms, np.array([1.0, 0.5]), (1, 2)).sums
        array([[0. , 1.5]])
        """
        pair, size = users * shape[1] + arms, shape[0] * shape[1]
        counts = np.bincount(pair, minlength=size).astype(np.float64)
        sums = np.bincount(pair, rewards, minlength=size).astype(np.float64, copy=False)
        squares = np.bincount(pair, rewards * rewards, minlength=size).astype(
            np.float64, copy=False
        )
        return cls(counts.reshape(shape), sums.reshape(shape), squares.reshape(shape))

    def __add__(self, other: PairTotals) -> PairTotals:
        return PairTotals(
            self.counts + other.counts, self.sums + other.sums, self.squares + other.squares
        )

    def of_users(self, places: LongArray) -> PairTotals:
        """Return the totals of some users."""
        return PairTotals(self.counts[places], self.sums[places], self.squares[places])

    @property
    def n_users(self) -> int:
        """Users, with and without rows."""
        return len(self.counts)

    @property
    def n_arms(self) -> int:
        """Arms."""
        return int(self.counts.shape[1])
