"""Pooled elimination over horizons too long to play: estimates are drawn from their law.

With normal rewards of variance 1 and the groups given, the least squares' evidence of an arm is
normal with mean Λμ and covariance Λ, Λ being the information of the batch. Here Λ is replaced by
its expectation over the groups, to which the matrix Chernoff bound ties it once a batch is long.
All else, the batches, decompositions and decisions, is the policy's own code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.grouping import least_information
from shoal.model import Problem
from shoal.policies.pooled.elimination import PooledElimination
from shoal.policies.pooled.least_squares import RIDGE, Pooled

Floats = NDArray[np.float64]


def expected_information(played: NDArray[np.bool_], repeats: Floats, min_group_size: int) -> Floats:
    """Return the expected Λ of one arm, (n_users, n_users); ``played`` is (assignments, users)."""
    crowds = played.sum(axis=1)
    own, common = np.zeros(len(crowds)), np.zeros(len(crowds))
    for crowd in np.unique(crowds[crowds >= min_group_size]):
        least = least_information(int(crowd), min_group_size)
        rows = crowds == crowd
        n_seen = crowd if crowd >= 2 * min_group_size else min_group_size
        # The eigenvalue on the all-ones vector is the share of the crowd that is in a group.
        own[rows], common[rows] = least, (n_seen / crowd - least) / crowd
    on_arm = played.astype(np.float64)
    information: Floats = on_arm.T @ ((repeats * common)[:, None] * on_arm)
    information[np.diag_indices(len(information))] += (repeats * own) @ on_arm
    return information


class LawOfTotals(Pooled):
    """Take in a whole batch at once, by the law of its least squares; add up the regret."""

    def __init__(self, problem: Problem, means: Floats, *, rng: np.random.Generator) -> None:
        super().__init__(problem, rng=rng)
        self._means = means
        self._losses = means.max(axis=1, keepdims=True) - means
        self._rounds_left = float(problem.horizon or 0)
        self._batch: tuple[NDArray[Any], NDArray[Any]] | None = None
        self.regret = 0.0

    def load(self, shard: int, assignments: NDArray[Any], repeats: NDArray[Any]) -> None:
        """Keep the batch until its estimates are asked for; until then the policy may forget."""
        self._batch = assignments, repeats

    def estimates(self, shard: int) -> tuple[Floats, Floats]:
        """Play the batch that was loaded, and solve."""
        if self._batch is not None:
            self._play(shard, *self._batch)
            self._batch = None
        return super().estimates(shard)

    def _play(self, shard: int, assignments: NDArray[Any], repeats: NDArray[Any]) -> None:
        """Add the batch's expected information and evidence drawn from its law."""
        share = min(1.0, self._rounds_left / repeats.sum())
        weights = repeats * share
        self._rounds_left -= weights.sum()
        for arm in range(self._problem.n_arms):
            played = assignments == arm
            self.regret += float(weights @ (played @ self._losses[:, arm]))
            information = expected_information(played, weights, self._problem.min_group_size)
            users = np.flatnonzero(information.diagonal() > 0)
            part = information[np.ix_(users, users)]
            root = np.linalg.cholesky(part + RIDGE * np.eye(len(users)))
            noise = root @ self._rng.standard_normal(len(users))
            self.information[shard, arm] += information
            self.evidence[shard, arm, users] += part @ self._means[users, arm] + noise

    def commit(self, shard: int, arms: NDArray[Any]) -> None:
        """Let everyone play ``arms`` for the rest of the horizon."""
        super().commit(shard, arms)
        self.regret += self._rounds_left * float(self._losses[np.arange(len(arms)), arms].sum())


class LongPooledElimination(PooledElimination):
    """Pooled elimination, one batch a step."""

    def __init__(
        self, problem: Problem, means: Floats, *, rng: np.random.Generator, **options: Any
    ):
        self._means = means
        super().__init__(problem, rng=rng, estimates="batch", **options)

    def _make_elicitor(self) -> LawOfTotals:
        return LawOfTotals(self.problem, self._means, rng=self.rng)

    def finish(self) -> float:
        """Go through all batches and return the total regret."""
        samples = self._samples
        assert isinstance(samples, LawOfTotals)
        while samples.idle:
            self._start_batch(0)
        return samples.regret


def long_regret(
    means: Floats, *, min_group_size: int, horizon: int, seed: int, **options: Any
) -> float:
    """Return the regret of one run of pooled elimination with normal rewards."""
    n_users, n_arms = means.shape
    problem = Problem(n_users, n_arms, min_group_size, horizon)
    rng = np.random.default_rng(seed)
    return LongPooledElimination(problem, means, rng=rng, **options).finish()
