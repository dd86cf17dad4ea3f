"""Algorithm 1 with the pooled estimator in place of the paper's sub-algorithm (docs/theory.md)."""

from __future__ import annotations

from shoal.policies.paper.batched_elimination import BatchedElimination
from shoal.policies.paper.elicitor import Elicitor
from shoal.policies.pooled.least_squares import Pooled


class PooledElimination(BatchedElimination):
    """Batched elimination in which every round's totals count: one sample takes one round.

    Its options are those of ``BatchedElimination``, but for a geometric ``grid`` by default. Arms
    have unequal numbers of samples, so that an arm is compared with the best one pairwise.
    """

    takes_merged = True
    _default_grid = "geometric"
    _pairwise = True

    def _make_elicitor(self) -> Elicitor:
        return Pooled(self.problem, rng=self.rng)
