"""A large population in blocks, each with a joint posterior: for who plays many rounds.

The joint posterior of thousands of users costs too much, but that of a few hundred does not, and
where rounds are many a block learns by itself how its users differ. Users are dealt out to blocks
like cards, so that blocks are alike. Plans have no groups across blocks. Groups that others have
drawn or merged may cross them: then each block takes the users of the others as what it is told of
them (``posterior.of_others``).
"""

import numpy as np

from shoal.arrays import BoolArray, LongArray, WholeArray
from shoal.errors import InvalidInputError
from shoal.grouping import RoundTotals, round_totals
from shoal.model import Feedback, Plan, Problem, State
from shoal.policies.base import ArmMeans, Choice, Policy
from shoal.policies.beliefs import Beliefs
from shoal.policies.shoal.joint.policy import JointPolicy


class BlockPolicy(Policy):
    """The joint learner on blocks of at most ``max_size`` users.

    ``make_shoal`` says what ``drift`` is.
    """

    changing = (*Policy.changing, "learner")
    takes_merged = True
    takes_groups = True

    def __init__(
        self, problem: Problem, *, rng: np.random.Generator, max_size: int, drift: float = 0.0
    ) -> None:
        super().__init__(problem, rng=rng)
        n_blocks, size = block_shape(problem.shard_size, max_size)
        seats = problem.n_shards * n_blocks * size
        self._seats = deal(problem, n_blocks, size)
        inner = Problem(
            seats, problem.n_arms, problem.min_group_size, problem.horizon,
            problem.n_shards * n_blocks, bounded=problem.bounded,
        )  # fmt: skip
        self.learner = JointPolicy(inner, rng=rng, drift=drift)
        self._allow(np.ones((problem.n_users, problem.n_arms), np.bool_))

    def _allow(self, eligible: BoolArray) -> None:
        seated = np.zeros((self.learner.problem.n_users, self.problem.n_arms), np.bool_)
        seated[self._seats] = eligible
        self.learner.allow(seated)

    def _choose(self) -> Choice:
        arms, groups, repeats = self.learner._choose()
        _, numbers = np.unique(groups[self._seats], return_inverse=True)
        grouped = groups[self._seats] >= 0
        numbers -= 0 if grouped.all() else 1  # the first of them is that of no group
        return arms[self._seats], numbers.astype(np.int32), repeats

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        played = round_totals(plan, feedback)
        arms, reported = np.zeros((2, self.learner.problem.n_users), np.int32)
        groups = np.full_like(arms, -1)
        arms[self._seats], groups[self._seats] = played.arms, played.groups
        reported[self._seats] = played.reported
        seated = RoundTotals(arms, groups, played.totals, played.released, reported)
        self.learner.posterior.absorb_totals(seated, plan.repeats)
        self.learner.rounds += plan.repeats

    def restore(self, state: State) -> None:
        """Continue from ``state``; earlier versions kept other numbers of such populations."""
        if "learner" not in state:
            raise InvalidInputError(
                "state must be of blocks of users; got that of an earlier version, which learnt "
                "all users at once. A campaign of the service is learnt again by shoal relearn."
            )
        super().restore(state)

    def arm_means(self, present: BoolArray) -> ArmMeans:
        """Return each arm's mean over the users who are ``present``, from the posteriors."""
        seated = np.zeros(self.learner.problem.n_users, np.bool_)
        seated[self._seats] = present
        return self.learner.arm_means(seated)

    def beliefs(self, *, users: WholeArray | None = None) -> Beliefs:
        """Return what is believed of users, from the posterior of their block."""
        return self.learner.beliefs(users=self._seats if users is None else self._seats[users])


def block_shape(n_users: int, max_size: int) -> tuple[int, int]:
    """Return how many blocks there are, as few as possible, and how many seats each has.

    >>> block_shape(601, 256)
    (3, 201)
    """
    n_blocks = -(-n_users // max_size)
    return n_blocks, -(-n_users // n_blocks)


def deal(problem: Problem, n_blocks: int, size: int) -> LongArray:
    """Return each user's seat among all blocks'; those of a shard are dealt out in turn.

    >>> deal(Problem(n_users=5, n_arms=2, min_group_size=2), 2, 3)
    array([0, 3, 1, 4, 2])
    """
    shard, place = np.divmod(np.arange(problem.n_users), problem.shard_size)
    row, block = np.divmod(place, n_blocks)
    seats: LongArray = (shard * n_blocks + block) * size + row
    return seats
