"""Linear programs over open sets: P_C as the convex hull of the P_C(S) (Section 3.4.2).

A point of P_C is a mixture of points of P_C(S) over sets S of open arms. Users of the same type
are interchangeable, so only their average matters, and the programs below have a size that is
free of the number of users. For each set S in play there are

- y_S ≥ 0, the weight of S, all weights together at most 1;
- z_tjS ≥ 0, how much users of type t play arm j while S is open, at most y_S over all arms, with
  at least ``min_crowd``·y_S users on every arm of S in all.

``OpenSetProgram`` keeps such a program warm while sets are added.
"""

from __future__ import annotations

import highspy
import numpy as np

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.decompositions.solver import quiet_solver, solve


class OpenSetProgram:
    """A program that couples a point, one number per (type, arm) pair, with weights of open sets.

    Its rows are: the weights' sum, at most 1; then, per pair, the plays of the pair over all sets
    plus ``extra`` columns, between ``lower`` and ``upper``.

    Parameters
    ----------
    patterns
        The arms that users of each type may play, (n_types, n_arms).
    counts
        Users of each type, (n_types,).
    min_crowd
        Fewest users on an open arm.
    extra
        Coefficients of the other columns, (n_pairs, n_extra), with their ``gains`` (n_extra,).
    lower, upper
        Bounds of the pairs' rows, (n_pairs,).
    """

    def __init__(
        self,
        patterns: BoolArray,
        counts: LongArray,
        *,
        min_crowd: int,
        extra: FloatArray,
        gains: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
    ) -> None:
        self._patterns, self._counts, self._min_crowd = patterns, counts, min_crowd
        self._row_of = np.cumsum(patterns.ravel()).reshape(patterns.shape)  # 0 is the weights' row
        self._n_extra = len(gains)
        self.sets: list[BoolArray] = []
        self._pairs: list[tuple[LongArray, LongArray]] = []
        self._crowd_rows: list[int] = []
        kinds, columns = np.nonzero(extra.T)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(gains), 1 + len(lower)
        lp.col_cost_ = gains
        lp.col_lower_, lp.col_upper_ = np.zeros(len(gains)), np.full(len(gains), np.inf)
        lp.row_lower_ = np.concatenate([[-np.inf], lower])
        lp.row_upper_ = np.concatenate([[1.0], upper])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.searchsorted(kinds, np.arange(len(gains) + 1))
        lp.a_matrix_.index_ = 1 + columns
        lp.a_matrix_.value_ = extra.T[kinds, columns]
        lp.sense_ = highspy.ObjSense.kMaximize
        self._solver = quiet_solver()
        self._solver.passModel(lp)

    def add(self, opened: BoolArray) -> None:
        """Bring a set of open arms, (n_arms,), into play."""
        kind, arm = np.nonzero(self._patterns & opened)
        kinds, type_row = np.unique(kind, return_inverse=True)
        arms = np.flatnonzero(opened)
        n_pairs, n_kinds, n_open = len(kind), len(kinds), len(arms)
        first = self._solver.getNumRow()
        none, infinite = np.zeros(0, np.int32), np.full(n_kinds + n_open, np.inf)
        # Rows: y - sum of z ≥ 0 for each type, users on the arm / min_crowd - y ≥ 0 for each arm.
        self._solver.addRows(
            n_kinds + n_open, np.zeros(n_kinds + n_open), infinite, 0,
            np.zeros(n_kinds + n_open, np.int32), none, np.zeros(0),
        )  # fmt: skip
        own = first + np.arange(n_kinds + n_open)
        weight = np.concatenate([[1.0], np.ones(n_kinds), -np.ones(n_open)])
        plays = np.stack(
            [np.ones(n_pairs), -np.ones(n_pairs), self._counts[kind] / self._min_crowd], axis=1
        )
        rows = np.stack(
            [
                self._row_of[kind, arm],
                first + type_row,
                first + n_kinds + np.searchsorted(arms, arm),
            ],
            axis=1,
        )
        n_new = 1 + n_pairs
        starts = np.concatenate([[0], len(weight) + 3 * np.arange(n_pairs)])
        self._solver.addCols(
            n_new, np.zeros(n_new), np.zeros(n_new), np.full(n_new, np.inf),
            len(weight) + plays.size, starts.astype(np.int32),
            np.concatenate([[0], own, rows.ravel()]).astype(np.int32),
            np.concatenate([weight, plays.ravel()]),
        )  # fmt: skip
        self.sets.append(opened)
        self._pairs.append((kind, arm))
        self._crowd_rows.append(first + n_kinds)

    def solve(self, *, vertex: bool) -> float:
        """Return the largest gain with the sets in play.

        At a vertex few sets have weight. In the middle of the optimal face, where an interior
        point method ends, prices are the most telling: far fewer sets have to be added. Small
        programs go by the simplex method, which starts where it last ended.
        """
        small = vertex and self._solver.getNumCol() < 2000
        self._solver.setOptionValue("solver", "simplex" if small else "ipm")
        self._solver.setOptionValue("run_crossover", "on" if vertex else "off")
        solve(self._solver)
        return float(self._solver.getInfo().objective_function_value)

    def prices(self) -> tuple[float, FloatArray]:
        """Return the dual price of weight, and of each pair's row, (n_types, n_arms)."""
        duals = np.asarray(self._solver.getSolution().row_dual)
        prices = np.zeros(self._patterns.shape)
        prices[self._patterns] = duals[1 : 1 + int(self._patterns.sum())]
        return float(duals[0]), -prices

    def crowd_prices(self) -> FloatArray:
        """Return the dual price of a user on each open arm of each set, (n_sets, n_arms)."""
        duals = np.asarray(self._solver.getSolution().row_dual)
        prices = np.zeros((len(self.sets), self._patterns.shape[1]))
        for number, (opened, row) in enumerate(zip(self.sets, self._crowd_rows, strict=True)):
            prices[number, opened] = -duals[row : row + opened.sum()] / self._min_crowd
        return prices

    def solution(self) -> tuple[FloatArray, FloatArray]:
        """Return the sets' weights, (n_sets,), and plays, (n_sets, n_types, n_arms)."""
        values = np.maximum(0.0, np.asarray(self._solver.getSolution().col_value))
        weights = np.zeros(len(self.sets))
        plays = np.zeros((len(self.sets), *self._patterns.shape))
        at = self._n_extra
        for number, (kind, arm) in enumerate(self._pairs):
            weights[number] = values[at]
            plays[number, kind, arm] = values[at + 1 : at + 1 + len(kind)]
            at += 1 + len(kind)
        return weights, plays
