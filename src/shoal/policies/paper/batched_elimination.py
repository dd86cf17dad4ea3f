"""Algorithm 1: every user runs BaSE in step, fed by an anonymous decomposition.

In batch b each user wants D_b samples, spread evenly over its active arms. A decomposition turns
that into assignments (line 5), an elicitor turns each assignment into samples (line 7), and BaSE
drops the arms that are clearly worse (line 8). BaSE's horizon is T' = T / (alpha·r) (line 2), with
alpha the ``approximation_ratio`` and r the rounds that a sample takes, 2C+2 for the paper's
sub-algorithm. Its last batch plays the best arm and needs no more feedback.

Where the active arms do not form a U-batched graph for U = C+1 the paper aborts (line 4).
``robust`` goes on instead, as the paper's simulations do: what can be learnt is learnt, all other
users play random active arms, and a decomposition that refuses the graph is replaced by another.
"""

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np

from shoal.arrays import BoolArray, IntArray, LongArray
from shoal.decompositions import (
    METHODS,
    Decomposition,
    is_batched,
    random_decomposition,
    serviceable,
)
from shoal.errors import DemandError, ShoalError, UnknownNameError
from shoal.model import Feedback, Plan, Problem
from shoal.model.numbers import positive_number
from shoal.policies.base import Choice, Policy
from shoal.policies.paper.elicitor import Elicitor
from shoal.policies.paper.grid import batch_ends, default_batches
from shoal.policies.paper.leave_one_out import LeaveOneOut
from shoal.policies.paper.successive_elimination import best_arms, eliminate

DECOMPOSITIONS = (
    "greedy", "greedy-printed", "random", "lp", "blocks", "euler", "home-away", "optimal",
)  # fmt: skip
FALLBACKS = {"lp": "blocks", "optimal": "home-away"}
"""What a robust policy decomposes by where the method refuses a graph."""


def default_ratio(decomposition: str, n_arms: int) -> float:
    """Return a bound on a method's approximation ratio for every graph that its theorem is for.

    That is U ≥ K(C+1) for "lp", and U ≥ C+1 for the others; "random" has no theorem, and stops at
    K times the demand.

    >>> [default_ratio(name, 5) for name in ("lp", "home-away", "blocks")]
    [1.0, 1.8, 5.0]
    """
    if decomposition == "lp":
        return 1.0
    if decomposition in ("home-away", "optimal"):
        return 2.0 - 1.0 / n_arms
    return float(n_arms)


@dataclass(eq=False, repr=False)
class BatchedElimination(Policy):
    """Algorithm 1 with any decomposition.

    Parameters
    ----------
    decomposition
        One of ``DECOMPOSITIONS``. "random" stops at K times the demand, met or not.
    gamma
        BaSE's parameter: an arm goes when it is sqrt(gamma / samples) behind. By default
        log(N·K·T), the order that the paper's analysis asks for.
    n_batches
        B; by default round(log2 log2 T) for the minimax grid, round(log2 T) for the geometric.
    grid
        "minimax", the default, or "geometric".
    approximation_ratio
        alpha, by which BaSE's horizon is shortened; by default the bound of ``default_ratio``.
    robust
        Go on where the paper's Algorithm 1 aborts.
    pairwise
        Compare two arms by the samples of both, as the guarantee needs. By default an arm has to be
        behind by what the user's arm of the most samples allows, as printed: decompositions give
        a user up to K times as many samples of one arm as of another.
    """

    changing = (*Policy.changing, "_active", "_batches", "_samples")
    takes_shards = True

    problem: Problem
    _: KW_ONLY
    rng: np.random.Generator
    decomposition: str = "euler"
    gamma: float | None = None
    n_batches: int | None = None
    grid: str = "minimax"
    approximation_ratio: float | None = None
    robust: bool = True
    pairwise: bool = False

    def __post_init__(self) -> None:
        problem = self.problem
        super().__init__(problem, rng=self.rng)
        self.need_spare_user()
        horizon = self.need_horizon()
        if self.decomposition not in DECOMPOSITIONS:
            raise UnknownNameError("decomposition", self.decomposition, DECOMPOSITIONS)
        self._samples = self._make_elicitor()
        n_batches, ratio, gamma = self.n_batches, self.approximation_ratio, self.gamma
        if n_batches is None:
            n_batches = default_batches(horizon, grid=self.grid)
        if ratio is None:
            ratio = self._default_ratio()
        if gamma is None:
            gamma = self._default_gamma()
        ratio = positive_number("approximation_ratio", ratio)
        samples = max(1, int(horizon / (ratio * self._samples.rounds_per_sample)))
        ends = batch_ends(samples, n_batches, grid=self.grid)
        self._demands = np.diff(ends, prepend=0)[:-1]  # the last batch asks for nothing
        self._gamma = positive_number("gamma", gamma)
        self._active = np.ones((problem.n_users, problem.n_arms), dtype=bool)
        self._batches = [0] * problem.n_shards

    def _make_elicitor(self) -> Elicitor:
        return LeaveOneOut(self.problem)

    def _default_gamma(self) -> float:
        return math.log(self.problem.shard_size * self.problem.n_arms * self.need_horizon())

    def _default_ratio(self) -> float:
        return default_ratio(self.decomposition, self.problem.n_arms)

    def _choose(self) -> Choice:
        for shard in tuple(self._samples.idle):
            self._start_batch(shard)
        return self._samples.choose()

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        self._samples.learn(plan, feedback)

    def _start_batch(self, shard: int) -> None:
        """End a shard's batch (line 8) and start its next one, or commit to the best arms."""
        users = self.problem.shard(shard)
        means, counts = self._samples.estimates(shard)
        batch = self._batches[shard]
        if batch > 0:
            self._active[users] = eliminate(
                self._active[users], means, counts, gamma=self._gamma, pairwise=self.pairwise
            )
        self._batches[shard] += 1
        active = self._active[users]
        if batch < len(self._demands):
            assignments, repeats = self._assignments(active, int(self._demands[batch]))
            if len(assignments):
                self._samples.load(shard, assignments, repeats)
                return
        best = best_arms(active, means, counts)
        unknown = best < 0
        best[unknown] = self._random_active(active[unknown], 1)[0]
        self._samples.commit(shard, best)

    def _assignments(self, active: BoolArray, demand: int) -> tuple[IntArray, LongArray]:
        """Run Decompose (lines 4 and 5) on the pairs of user and arm that can have a crowd."""
        min_crowd = self.problem.min_group_size + 1
        if not self.robust and not is_batched(active, min_crowd):
            raise ShoalError(
                f"active arms must form a U-batched graph for U={min_crowd}; "
                "Algorithm 1 aborts here."
            )
        demanded = serviceable(active, min_crowd)
        learning = demanded.any(axis=1)
        if not learning.any():
            return np.empty((0, len(active)), np.int32), np.empty(0, np.int64)
        # A full crowd where all arms can have one, the least that teaches anything otherwise.
        full_crowd = self._samples.min_crowd
        crowds = demanded.sum(axis=0)
        if (crowds[crowds > 0] >= full_crowd).all():
            min_crowd = full_crowd
        part = self._decompose(demanded[learning], demand, min_crowd)
        assignments = np.empty((len(part.repeats), len(active)), np.int32)
        assignments[:, learning] = part.assignments
        assignments[:, ~learning] = self._random_active(active[~learning], len(part.repeats))
        return assignments, part.repeats

    def _decompose(self, active: BoolArray, demand: int, min_crowd: int) -> Decomposition:
        name, rng = self.decomposition, self.rng
        if name == "random":
            # Never more assignments than the greedy decomposition is sure to manage with.
            limit = active.shape[1] * demand
            return random_decomposition(
                active, demand, min_crowd=min_crowd, rng=rng, limit=limit, partial=True
            )
        try:
            return METHODS[name].decompose(active, demand, min_crowd=min_crowd, rng=rng)
        except DemandError:
            if not self.robust or name not in FALLBACKS:
                raise
            fallback = METHODS[FALLBACKS[name]]
            return fallback.decompose(active, demand, min_crowd=min_crowd, rng=rng)

    def _random_active(self, active: BoolArray, n_draws: int) -> IntArray:
        """Draw a random active arm for each user, (n_draws, n_users)."""
        ranks = self.rng.integers(active.sum(axis=1), size=(n_draws, len(active)))
        is_before = np.cumsum(active, axis=1) <= ranks[:, :, None]
        arms: IntArray = is_before.sum(axis=2, dtype=np.int32)
        return arms
