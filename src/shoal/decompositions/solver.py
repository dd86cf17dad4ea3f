"""Linear programs in HiGHS, built in one place; the solver is loaded with the first program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.arrays import FloatArray, LongArray

if TYPE_CHECKING:
    import highspy


class Columns(NamedTuple):
    """A sparse matrix: the entries of column j are at starts[j] up to starts[j+1]."""

    starts: LongArray  # (n_columns + 1,)
    rows: LongArray  # (n_entries,)
    values: FloatArray  # (n_entries,)


class LinearProgram:
    """Maximise gains·x, where 0 ≤ x ≤ upper and row_lower ≤ matrix·x ≤ row_upper.

    Silent and on one thread. Without integer columns there is no presolve, so that a solve starts
    where the last one ended.
    """

    def __init__(
        self,
        *,
        gains: FloatArray,  # (n_columns,)
        upper: FloatArray,
        row_lower: FloatArray,  # (n_rows,)
        row_upper: FloatArray,
        matrix: Columns,
        n_integer: int = 0,  # how many of the last columns must be integers
    ) -> None:
        import highspy

        n_columns = len(gains)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = n_columns, len(row_lower)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = gains, np.zeros(n_columns), upper
        lp.row_lower_, lp.row_upper_ = row_lower, row_upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = matrix.starts
        lp.a_matrix_.index_ = matrix.rows
        lp.a_matrix_.value_ = matrix.values
        lp.sense_ = highspy.ObjSense.kMaximize
        make: Callable[[], highspy.Highs] = highspy.Highs
        self.highs = make()
        self.highs.setOptionValue("output_flag", False)
        self.highs.setOptionValue("threads", 1)
        self.highs.setOptionValue("presolve", "on" if n_integer else "off")
        if n_integer:
            kinds = highspy.HighsVarType
            n_continuous = n_columns - n_integer
            lp.integrality_ = [kinds.kContinuous] * n_continuous + [kinds.kInteger] * n_integer
            self.highs.setOptionValue("mip_rel_gap", 0.0)
        self.highs.passModel(lp)

    def set_gains(self, gains: FloatArray) -> None:
        """Change the gains of the first columns."""
        self.highs.changeColsCost(len(gains), np.arange(len(gains), dtype=np.int32), gains)

    def set_upper(self, columns: LongArray, upper: FloatArray) -> None:
        """Change the upper bounds of these columns."""
        zeros = np.zeros(len(columns))
        self.highs.changeColsBounds(len(columns), columns.astype(np.int32), zeros, upper)

    def add_rows(self, n_rows: int) -> int:
        """Add empty rows with the bounds 0 and infinity; return the number of the first."""
        first = int(self.highs.getNumRow())
        none = np.zeros(0, np.int32)
        starts = np.zeros(n_rows, np.int32)
        infinite = np.full(n_rows, np.inf)
        self.highs.addRows(n_rows, np.zeros(n_rows), infinite, 0, starts, none, np.zeros(0))
        return first

    def add_columns(self, columns: Columns) -> None:
        """Add columns without gain or upper bound."""
        starts, rows = columns.starts[:-1].astype(np.int32), columns.rows.astype(np.int32)
        n_columns = len(starts)
        zeros, infinite = np.zeros(n_columns), np.full(n_columns, np.inf)
        self.highs.addCols(
            n_columns, zeros, zeros, infinite, len(rows), starts, rows, columns.values
        )

    def solve(self) -> float:
        """Return the largest gain of a program that is known to have an optimum.

        An interior point method may stop short of it, with the status "unknown"; the simplex
        method then starts from nothing.
        """
        import highspy

        optimal = highspy.HighsModelStatus.kOptimal
        self.highs.run()
        if self.highs.getModelStatus() != optimal:
            _, solver = self.highs.getOptionValue("solver")
            self.highs.clearSolver()
            self.highs.setOptionValue("solver", "simplex")
            self.highs.run()
            self.highs.setOptionValue("solver", solver)
        if self.highs.getModelStatus() != optimal:
            raise RuntimeError(f"HiGHS must find an optimum; got {self.highs.getModelStatus()}.")
        return float(self.highs.getInfo().objective_function_value)

    def values(self) -> FloatArray:
        """Return the value of each column in the last solution."""
        return np.asarray(self.highs.getSolution().col_value)

    def row_duals(self) -> FloatArray:
        """Return the dual price of each row in the last solution."""
        return np.asarray(self.highs.getSolution().row_dual)
