"""Pricing of open sets: the point of P_C that a linear price favours most.

For prices p on (type, arm) pairs, the largest sum of p·z over the plays z of one open set. Exact
either way: for few arms all sets that their users can fill are tried, best hope first, each by a
small warm LP, until no hope is left; for many arms a MILP decides which arms to open.
"""

from __future__ import annotations

from time import monotonic

import highspy
import numpy as np

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.decompositions.solver import quiet_solver, solve

TRIED_ARMS = 12
_AT_ONCE = 8


def pricing(patterns: BoolArray, counts: LongArray, *, min_crowd: int) -> Trial | Mip:
    """Return the exact pricing that suits the number of wanted arms."""
    kind = Trial if patterns.any(axis=0).sum() <= TRIED_ARMS else Mip
    return kind(patterns, counts, min_crowd=min_crowd)


class Trial:
    """Pricing by trying all sets that can be filled."""

    def __init__(self, patterns: BoolArray, counts: LongArray, *, min_crowd: int) -> None:
        n_types, n_arms = patterns.shape
        self.sets = fillable_sets(patterns, counts, min_crowd)
        self._patterns, self._min_crowd = patterns, min_crowd
        self._kind, self._arm = np.nonzero(patterns)
        n_pairs = len(self._kind)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = n_pairs, n_types + n_arms
        lp.col_cost_, lp.col_lower_ = np.zeros(n_pairs), np.zeros(n_pairs)
        lp.col_upper_ = np.ones(n_pairs)
        lp.row_lower_ = np.full(n_types + n_arms, -np.inf)
        lp.row_upper_ = np.concatenate([np.ones(n_types), np.full(n_arms, np.inf)])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = 2 * np.arange(n_pairs + 1)
        lp.a_matrix_.index_ = np.stack([self._kind, n_types + self._arm], axis=1).ravel()
        lp.a_matrix_.value_ = np.stack(
            [np.ones(n_pairs), counts[self._kind] / min_crowd], axis=1
        ).ravel()
        lp.sense_ = highspy.ObjSense.kMaximize
        self._solver = quiet_solver()
        self._solver.passModel(lp)

    def best(
        self, prices: FloatArray, *, above: float, seconds: float
    ) -> tuple[list[BoolArray], float]:
        """Return sets of value more than ``above``, and an upper bound on every set's value."""
        end = monotonic() + seconds
        gains = np.where(self._patterns, prices, -np.inf)
        # Without the crowds, every type would play its dearest open arm, or none.
        hopes = np.array(
            [np.maximum(0.0, gains[:, opened].max(axis=1)).sum() for opened in self.sets]
        )
        found: list[BoolArray] = []
        bound = above
        for number in np.argsort(-hopes, kind="stable"):
            if hopes[number] <= above or len(found) == _AT_ONCE or monotonic() > end:
                bound = max(bound, float(hopes[number]))
                break
            value = self.value(prices, self.sets[number])
            bound = max(bound, value)
            if value > above:
                found.append(self.sets[number])
        return found, bound

    def value(self, prices: FloatArray, opened: BoolArray) -> float:
        """Return the largest sum of prices·plays with exactly these arms open."""
        pairs = np.arange(len(self._kind), dtype=np.int32)
        self._solver.changeColsCost(len(pairs), pairs, prices[self._kind, self._arm])
        upper = opened[self._arm].astype(float)
        self._solver.changeColsBounds(len(pairs), pairs, np.zeros(len(pairs)), upper)
        first = len(self._patterns)
        for arm, is_open in enumerate(opened):
            self._solver.changeRowBounds(first + arm, 1.0 if is_open else -np.inf, np.inf)
        solve(self._solver)
        return float(self._solver.getInfo().objective_function_value)


def fillable_sets(patterns: BoolArray, counts: LongArray, min_crowd: int) -> BoolArray:
    """Return all sets of arms that can be open at once, (n_sets, n_arms): Hall's condition."""
    arms = np.flatnonzero(patterns.any(axis=0))
    codes = patterns[:, arms] @ (1 << np.arange(len(arms)))
    # Users within each set of arms, then users with an arm in each set, both for all sets.
    within = np.bincount(codes, counts, 1 << len(arms))
    subsets = np.arange(1 << len(arms))
    for bit in 1 << np.arange(len(arms)):
        has = (subsets & bit) > 0
        within[has] += within[~has]
    sizes = np.bitwise_count(subsets).astype(np.int64)
    spare = counts.sum() - within[::-1] - min_crowd * sizes
    for bit in 1 << np.arange(len(arms)):
        has = (subsets & bit) > 0
        spare[has] = np.minimum(spare[has], spare[~has])
    sets: BoolArray = np.zeros((1 << len(arms), patterns.shape[1]), np.bool_)
    sets[:, arms] = (subsets[:, None] >> np.arange(len(arms)) & 1).astype(np.bool_)
    fillable: BoolArray = sets[(spare >= 0) & (sizes > 0)]
    return fillable


class Mip:
    """Pricing by a MILP that decides which arms to open."""

    def __init__(self, patterns: BoolArray, counts: LongArray, *, min_crowd: int) -> None:
        n_types, n_arms = patterns.shape
        kind, arm = np.nonzero(patterns)
        n_pairs = len(kind)
        self._kind, self._arm, self._n_arms = kind, arm, n_arms
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = n_pairs + n_arms, n_types + n_arms + n_pairs
        lp.col_cost_ = np.zeros(n_pairs + n_arms)
        lp.col_lower_, lp.col_upper_ = np.zeros(n_pairs + n_arms), np.ones(n_pairs + n_arms)
        # A type plays at most 1 in all; an open arm has its crowd; only open arms are played.
        lp.row_lower_ = np.concatenate(
            [np.full(n_types, -np.inf), np.zeros(n_arms), np.full(n_pairs, -np.inf)]
        )
        lp.row_upper_ = np.concatenate(
            [np.ones(n_types), np.full(n_arms, np.inf), np.zeros(n_pairs)]
        )
        links = n_types + n_arms + np.arange(n_pairs)
        per_pair = np.stack([kind, n_types + arm, links], axis=1).ravel()
        per_arm = [np.append(n_types + one, links[arm == one]) for one in range(n_arms)]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.cumsum([0] + [3] * n_pairs + [len(rows) for rows in per_arm])
        lp.a_matrix_.index_ = np.concatenate([per_pair, *per_arm])
        users = np.stack([np.ones(n_pairs), counts[kind] / min_crowd, np.ones(n_pairs)], axis=1)
        lp.a_matrix_.value_ = np.append(users.ravel(), -np.ones(sum(map(len, per_arm))))
        lp.integrality_ = [highspy.HighsVarType.kContinuous] * n_pairs + [
            highspy.HighsVarType.kInteger
        ] * n_arms
        lp.sense_ = highspy.ObjSense.kMaximize
        self._solver = quiet_solver()
        self._solver.setOptionValue("presolve", "on")
        self._solver.setOptionValue("mip_rel_gap", 0.0)
        self._solver.passModel(lp)

    def best(
        self, prices: FloatArray, *, above: float, seconds: float
    ) -> tuple[list[BoolArray], float]:
        """Return a set of value more than ``above``, and an upper bound on every set's value."""
        pairs = np.arange(len(self._kind), dtype=np.int32)
        self._solver.changeColsCost(len(pairs), pairs, prices[self._kind, self._arm])
        self._solver.setOptionValue("time_limit", self._solver.getRunTime() + max(seconds, 0.1))
        self._solver.run()
        info = self._solver.getInfo()
        bound = max(above, float(info.mip_dual_bound))
        if not above < info.objective_function_value < np.inf:
            return [], bound
        columns = np.asarray(self._solver.getSolution().col_value)
        return [columns[-self._n_arms :] > 0.5], bound
