"""Pooled elimination: Algorithm 1 in which every round's totals count.

Two forms. The theorem of docs/theory.md, "The regret of pooled elimination", is for
``estimates="batch"``: what decides after a batch is that batch's totals alone, whose groups and
assignments do not depend on their rewards. ``estimates="all"``, the default, keeps all totals. That
is more information, but the assignments of later batches depend on the rewards of earlier ones, and
the theorem does not cover it.
"""

import numpy as np

from shoal.errors import UnknownNameError
from shoal.model import Problem
from shoal.policies.paper.batched_elimination import BatchedElimination
from shoal.policies.pooled.least_squares import Pooled

ESTIMATES = ("all", "batch")


class PooledElimination(BatchedElimination):
    """Algorithm 1 in which every round's totals count: one sample takes one round.

    Arms have unequal numbers of samples, so that an arm is compared with the best one pairwise.

    Parameters
    ----------
    estimates
        "all", from the totals of all batches so far, or "batch", from those of the last one, as
        in the theorem.
    decomposition, gamma, n_batches, grid, approximation_ratio, robust
        As in ``BatchedElimination``. By default ``estimates="all"`` decomposes by "euler" on a
        "geometric" grid with a ratio of 1, and ``estimates="batch"`` by "home-away" on a
        "minimax" grid with the ratio 2 − 1/K, and gamma is log(N·K·T), or four times that for
        rewards that are not in [0, 1], as the theorem asks.
    """

    takes_merged = True
    _samples: Pooled

    def __init__(
        self,
        problem: Problem,
        *,
        rng: np.random.Generator,
        estimates: str = "all",
        decomposition: str | None = None,
        gamma: float | None = None,
        n_batches: int | None = None,
        grid: str | None = None,
        approximation_ratio: float | None = None,
        robust: bool = True,
    ) -> None:
        if estimates not in ESTIMATES:
            raise UnknownNameError("estimates", estimates, ESTIMATES)
        self._per_batch = estimates == "batch"
        super().__init__(
            problem,
            rng=rng,
            decomposition=decomposition or ("home-away" if self._per_batch else "euler"),
            gamma=gamma,
            n_batches=n_batches,
            grid=grid or ("minimax" if self._per_batch else "geometric"),
            approximation_ratio=approximation_ratio,
            robust=robust,
            pairwise=True,
        )

    def _make_elicitor(self) -> Pooled:
        return Pooled(self.problem, rng=self.rng)

    def _default_ratio(self) -> float:
        return super()._default_ratio() if self._per_batch else 1.0

    def _default_gamma(self) -> float:
        bounded = self.problem.bounded or not self._per_batch
        return super()._default_gamma() * (1 if bounded else 4)

    def _start_batch(self, shard: int) -> None:
        super()._start_batch(shard)
        if self._per_batch:
            self._samples.forget(shard)
