"""What plays a batch's assignments and turns the totals into estimates, shard by shard.

Algorithm 1 asks for samples through assignments of users to arms. An elicitor cuts an assignment
into groups and estimates means from their totals: the paper's leaves one user out of each group at
a time, the pooled one regroups at random and solves for all users at once.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from shoal.arrays import FloatArray, IntArray, LongArray, WholeArray
from shoal.model import Feedback, Plan, Problem, Stateful

FOR_EVER = 2**62


class Elicitor(Stateful, ABC):
    """Every shard works through its queue of assignments, side by side with the others.

    Attributes
    ----------
    idle : list of int
        Shards whose queue is empty: ``load`` or ``commit`` them before the next ``choose``.
    rounds_per_sample : int
        Rounds that one assignment takes, for one sample of each user.
    min_crowd : int
        Users on an arm from which an assignment teaches about each of them.
    """

    changing: ClassVar[tuple[str, ...]] = ("idle", "_arms", "_left", "_queues", "_committed")
    rounds_per_sample: int
    min_crowd: int

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        n_shards = problem.n_shards
        self.idle = list(range(n_shards))
        self._committed = np.zeros(n_shards, np.bool_)
        self._arms: IntArray = np.zeros(problem.n_users, np.int32)
        self._left: LongArray = np.zeros(n_shards, np.int64)  # rounds before something changes
        self._queues: list[tuple[WholeArray, LongArray, int]] = [
            (np.empty((0, problem.shard_size), np.int32), np.empty(0, np.int64), 0)
        ] * n_shards

    def load(self, shard: int, assignments: WholeArray, repeats: LongArray) -> None:
        """Queue assignments (n_assignments, shard_size) with their repeat counts."""
        self.idle.remove(shard)
        self._queues[shard] = (assignments, repeats, 0)
        self._next(shard)

    def commit(self, shard: int, arms: WholeArray) -> None:
        """Let the shard's users play ``arms`` until the end, without feedback."""
        self.idle.remove(shard)
        self._arms[self._problem.shard(shard)] = arms
        self._left[shard] = FOR_EVER
        self._committed[shard] = True

    def _next(self, shard: int) -> None:
        """Start the shard's next assignment, or mark the shard as idle."""
        assignments, repeats, position = self._queues[shard]
        if position == len(assignments):
            self._left[shard] = 0
            self.idle.append(shard)
            return
        self._queues[shard] = (assignments, repeats, position + 1)
        self._arms[self._problem.shard(shard)] = assignments[position]
        self._begin(shard, int(repeats[position]))

    @abstractmethod
    def _begin(self, shard: int, repeats: int) -> None:
        """Start on the arms just set, for ``repeats`` samples; set the rounds ``_left``."""

    @abstractmethod
    def choose(self) -> tuple[IntArray, IntArray, int]:
        """Return the arms, the groups and for how many rounds they stay."""

    @abstractmethod
    def learn(self, plan: Plan, feedback: Feedback) -> None:
        """Take in the totals of the plan that ``choose`` proposed, over ``plan.repeats`` rounds."""

    @abstractmethod
    def estimates(self, shard: int) -> tuple[FloatArray, FloatArray]:
        """Return the shard's estimated means and how many samples each is worth.

        Both have the shape (shard_size, n_arms); a mean worth 0 samples means nothing.
        """
