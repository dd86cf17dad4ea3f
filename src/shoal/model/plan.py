"""One round's decision: each user's arm and group (Section 2.1: the assignment and its partition).

A ``Plan`` that breaks anonymity can't exist. The check is one compiled pass over the users.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import IntArray
from shoal.errors import AnonymityError, InvalidInputError
from shoal.frames import as_array
from shoal.kernels import kernel
from shoal.model.numbers import shortened, whole_number
from shoal.model.problem import Problem
from shoal.notebook import html_table

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from shoal.model.feedback import Feedback
    from shoal.model.totals import Rewards

_INT32 = np.dtype(np.int32)
_FINE, _ARM, _GROUP, _TWO_ARMS, _TWO_SHARDS, _SMALL = range(6)


class Plan:
    """Each user's arm and group for one round, or for ``repeats`` rounds in a row.

    Parameters
    ----------
    arms
        Each user's arm, (n_users,).
    groups
        Each user's group, (n_users,); -1 for a user in no group. Numbers below ``n_users``, not
        necessarily consecutive. Every group has one arm, lies in one shard and has at least
        ``problem.min_group_size`` members.
    repeats
        Play the same plan in this many consecutive rounds and sum the totals.
    problem
        The problem that the plan belongs to.

    Attributes
    ----------
    n_groups : int
        One more than the largest group number; the length of the feedback's totals.
    smallest_group : int
        Users in the smallest group, 0 if there is none.

    Examples
    --------
    >>> problem = Problem(n_users=5, n_arms=2, min_group_size=2)
    >>> Plan([0, 0, 1, 1, 1], [0, 0, 1, 1, -1], problem=problem)
    Plan(n_users=5, n_groups=2, smallest_group=2, repeats=1)
    >>> Plan([0, 0, 1, 1, 1], [0, 0, 1, 1, 2], problem=problem)
    Traceback (most recent call last):
    shoal.errors.AnonymityError: group 2 must have at least min_group_size=2 users; got 1.
    """

    __slots__ = ("arms", "groups", "n_groups", "problem", "repeats", "smallest_group")

    arms: IntArray
    groups: IntArray
    repeats: int
    problem: Problem
    n_groups: int
    smallest_group: int

    def __init__(
        self, arms: ArrayLike, groups: ArrayLike, repeats: int = 1, *, problem: Problem
    ) -> None:
        if not isinstance(problem, Problem):
            raise InvalidInputError(f"problem must be a Problem; got {shortened(problem)}.")
        arm_column = _column("arms", arms, problem.n_users)
        group_column = _column("groups", groups, problem.n_users)
        verdict, where, n_groups, smallest = _check(
            arm_column, group_column, problem.n_arms, problem.min_group_size, problem.shard_size
        )
        if verdict != _FINE:
            raise _error(verdict, where, arm_column, group_column, problem)
        if type(repeats) is not int or repeats < 1:
            repeats = whole_number("repeats", repeats)
        arm_column.setflags(write=False)
        group_column.setflags(write=False)
        assign = object.__setattr__
        assign(self, "arms", arm_column)
        assign(self, "groups", group_column)
        assign(self, "repeats", repeats)
        assign(self, "problem", problem)
        assign(self, "n_groups", n_groups)
        assign(self, "smallest_group", smallest)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Plan can't be changed; tried to set {name!r}")

    def __repr__(self) -> str:
        return (
            f"Plan(n_users={len(self.arms)}, n_groups={self.n_groups}, "
            f"smallest_group={self.smallest_group}, repeats={self.repeats})"
        )

    def _repr_html_(self) -> str:
        rows = []
        for arm in range(self.problem.n_arms):
            groups = self.groups[self.arms == arm]
            n_groups = len(np.unique(groups[groups >= 0]))
            rows.append((arm, len(groups), n_groups, np.count_nonzero(groups < 0)))
        rounds = "one round" if self.repeats == 1 else f"{self.repeats:,} rounds"
        names = ["arm", "users", "groups", "users in no group"]
        return html_table(f"Plan for {rounds}", names, rows)

    @property
    def assignments(self) -> dict[int, int]:
        """Each user's arm, by the user's number; a ``Roster`` has it by the user's id."""
        return dict(enumerate(self.arms.tolist()))

    def add_up(self, *rounds: Rewards) -> Feedback:
        """Return what a learner may see of rewards: the totals of the plan's groups.

        A group with fewer than ``min_group_size`` reporters is merged with others of its arm, or
        withheld, as in simulations and in the service. Rewards of users in no group add to
        nothing.

        Parameters
        ----------
        *rounds
            The rewards of those who reported, by the user's number, for each of the plan's
            ``repeats`` rounds: a mapping, pairs, or a dataframe, with the columns
            ``user`` and ``reward`` or with two of other names, users first.

        Examples
        --------
        >>> problem = Problem(n_users=5, n_arms=2, min_group_size=2)
        >>> plan = Plan([0, 0, 1, 1, 1], [0, 0, 1, 1, -1], problem=problem)
        >>> plan.add_up({0: 1.0, 1: 0.0, 2: 1.0})
        Feedback(n_groups=2, n_released=1, n_reported=2)
        """
        from shoal.model.totals import add_up

        return add_up(self, *rounds)

    def to_frame(self) -> pl.DataFrame:
        """Return a row for each user: its arm, and its group or -1."""
        import polars as pl

        users = np.arange(len(self.arms), dtype=np.int32)
        return pl.DataFrame({"user": users, "arm": self.arms, "group": self.groups})

    def plot(self) -> alt.LayerChart:
        """Draw each arm's crowd, cut into its groups, against the least group size."""
        from shoal.figures import crowds_figure

        return crowds_figure(self.arms, self.groups, min_group_size=self.problem.min_group_size)

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Plan, problem=self.problem), (self.arms, self.groups, self.repeats)


def _column(name: str, values: ArrayLike, n_users: int) -> IntArray:
    """Return a copy of ``values`` as an int32 column, refusing anything that is not whole."""
    array = values if type(values) is np.ndarray else as_array(name, values)
    if array.shape != (n_users,):
        raise InvalidInputError(f"{name} must have shape ({n_users},); got {array.shape}.")
    if array.dtype == _INT32:
        return array.copy()
    if array.dtype.kind not in "iu":
        raise InvalidInputError(f"{name} must hold whole numbers; got dtype {array.dtype}.")
    if not -(2**31) <= array.min() <= array.max() < 2**31:
        raise InvalidInputError(f"{name} must fit in 32 bits; got {array.max()}.")
    return array.astype(np.int32)


@kernel()
def _check(
    arms: IntArray, groups: IntArray, n_arms: int, min_group_size: int, shard_size: int
) -> tuple[int, int, int, int]:
    """Return the verdict, the user or group it is about, the group count and smallest size."""
    n_users = len(arms)
    n_groups = 0
    for user in range(n_users):
        if arms[user] < 0 or arms[user] >= n_arms:
            return _ARM, user, 0, 0
        if groups[user] < -1 or groups[user] >= n_users:
            return _GROUP, user, 0, 0
        n_groups = max(n_groups, groups[user] + 1)
    sizes = np.zeros(n_groups, np.int32)
    arm = np.empty(n_groups, np.int32)
    shard_end = np.empty(n_groups, np.int32)
    for user in range(n_users):
        group = groups[user]
        if group >= 0:
            if sizes[group] == 0:
                arm[group] = arms[user]
                shard_end[group] = (user // shard_size + 1) * shard_size
            elif arms[user] != arm[group]:
                return _TWO_ARMS, user, 0, 0
            elif user >= shard_end[group]:
                return _TWO_SHARDS, user, 0, 0
            sizes[group] += 1
    smallest = 0
    for group in range(n_groups):
        if sizes[group] > 0:
            if sizes[group] < min_group_size:
                return _SMALL, group, 0, 0
            if smallest == 0 or sizes[group] < smallest:
                smallest = sizes[group]
    return _FINE, 0, n_groups, smallest


def _error(
    verdict: int, where: int, arms: IntArray, groups: IntArray, problem: Problem
) -> InvalidInputError:
    if verdict == _ARM:
        return InvalidInputError(
            f"arms[{where}] must be between 0 and n_arms-1={problem.n_arms - 1}; got {arms[where]}."
        )
    if verdict == _GROUP:
        return InvalidInputError(
            f"groups[{where}] must be between -1 and n_users-1={problem.n_users - 1}; "
            f"got {groups[where]}."
        )
    group = where if verdict == _SMALL else groups[where]
    members = np.flatnonzero(groups == group)
    if verdict == _SMALL:
        return AnonymityError(
            f"group {group} must have at least min_group_size={problem.min_group_size} users; "
            f"got {len(members)}."
        )
    if verdict == _TWO_ARMS:
        group_arms = sorted(set(arms[members].tolist()))
        return AnonymityError(f"group {group} must have one arm; got arms {group_arms}.")
    shards = sorted(set((members // problem.shard_size).tolist()))
    return AnonymityError(f"group {group} must lie in one shard; got shards {shards}.")
