"""Sets of arms that are open at once: P_C as the convex hull of the P_C(S) (Section 3.4.2).

A point of P_C is a mixture of points of P_C(S) over sets S of open arms. Users of the same type
are interchangeable, so only their average matters, and the program below has a size that does not
depend on the number of users. For each set S in the program there are

- y_S ≥ 0, the weight of S, all weights together at most 1;
- z_tjS ≥ 0, how much users of type t play arm j while S is open, at most y_S over all arms, with
  at least ``min_crowd``·y_S users on every arm of S in all.

Column pricing finds the set whose plays z are worth most at prices p on (type, arm) pairs. Exact
either way: for few arms all sets that their users can fill are tried, largest upper bound first,
each by a small warm LP, until no bound is left; for many arms a MILP decides which arms to open.
"""

from __future__ import annotations

from time import monotonic

import numpy as np

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.decompositions.demand import BatchedGraph
from shoal.decompositions.solver import Columns, LinearProgram

_SIMPLEX_COLUMNS = 2000
_MAX_TRIED_ARMS = 12
_SETS_AT_ONCE = 8


class OpenSetProgram:
    """The largest beta for which mixtures of the open sets added so far cover beta·w.

    Its first column is beta. Its rows are: the weights' sum, at most 1; then, for each pair of a
    type and an active arm, the plays of the pair over all sets less beta/|A_t|, at least 0, or
    exactly 0 if ``exact``.
    """

    def __init__(self, graph: BatchedGraph, *, exact: bool) -> None:
        self._patterns, self._counts, self._min_crowd = graph
        self._row_of = np.cumsum(self._patterns.ravel()).reshape(self._patterns.shape)
        self.sets: list[BoolArray] = []
        self._pairs: list[tuple[LongArray, LongArray]] = []
        self._crowd_rows: list[int] = []
        kind, _ = np.nonzero(self._patterns)
        n_pairs = len(kind)
        self._program = LinearProgram(
            gains=np.ones(1),
            upper=np.full(1, np.inf),
            row_lower=np.append(-np.inf, np.zeros(n_pairs)),
            row_upper=np.append(1.0, np.full(n_pairs, 0.0 if exact else np.inf)),
            matrix=Columns(
                np.array([0, n_pairs]),
                1 + np.arange(n_pairs),
                -1.0 / self._patterns.sum(axis=1)[kind],
            ),
        )

    def add(self, open_arms: BoolArray) -> None:
        """Add a set of open arms, (n_arms,)."""
        kind, arm = np.nonzero(self._patterns & open_arms)
        kinds, type_row = np.unique(kind, return_inverse=True)
        arms = np.flatnonzero(open_arms)
        n_pairs, n_kinds, n_open = len(kind), len(kinds), len(arms)
        # Rows: y - sum of z ≥ 0 for each type, users on the arm / min_crowd - y ≥ 0 for each arm.
        first = self._program.add_rows(n_kinds + n_open)
        new_rows = first + np.arange(n_kinds + n_open)
        weight = np.concatenate([[1.0], np.ones(n_kinds), -np.ones(n_open)])
        users = self._counts[kind] / self._min_crowd
        plays = np.stack([np.ones(n_pairs), -np.ones(n_pairs), users], axis=1)
        arm_row = first + n_kinds + np.searchsorted(arms, arm)
        rows = np.stack([self._row_of[kind, arm], first + type_row, arm_row], axis=1)
        self._program.add_columns(
            Columns(
                np.append(0, len(weight) + 3 * np.arange(n_pairs + 1)),
                np.concatenate([[0], new_rows, rows.ravel()]),
                np.concatenate([weight, plays.ravel()]),
            )
        )
        self.sets.append(open_arms)
        self._pairs.append((kind, arm))
        self._crowd_rows.append(first + n_kinds)

    def solve(self, *, vertex: bool) -> float:
        """Return the largest beta with the sets added so far.

        At a vertex few sets have weight. In the middle of the optimal face, where an interior
        point method ends, prices are the most informative: far fewer sets have to be added. Small
        programs go by the simplex method, which starts where it last ended.
        """
        highs = self._program.highs
        small = vertex and highs.getNumCol() < _SIMPLEX_COLUMNS
        highs.setOptionValue("solver", "simplex" if small else "ipm")
        highs.setOptionValue("run_crossover", "on" if vertex else "off")
        return self._program.solve()

    def prices(self) -> tuple[float, FloatArray]:
        """Return the dual price of weight, and of each pair's row, (n_types, n_arms)."""
        duals = self._program.row_duals()
        prices = np.zeros(self._patterns.shape)
        prices[self._patterns] = duals[1 : 1 + int(self._patterns.sum())]
        return float(duals[0]), -prices

    def crowd_prices(self) -> FloatArray:
        """Return the dual price of a user on each open arm of each set, (n_sets, n_arms)."""
        duals = self._program.row_duals()
        prices = np.zeros((len(self.sets), self._patterns.shape[1]))
        for number, (open_arms, row) in enumerate(zip(self.sets, self._crowd_rows, strict=True)):
            prices[number, open_arms] = -duals[row : row + open_arms.sum()] / self._min_crowd
        return prices

    def solution(self) -> tuple[FloatArray, FloatArray]:
        """Return the sets' weights, (n_sets,), and plays, (n_sets, n_types, n_arms)."""
        values = np.maximum(0.0, self._program.values())
        weights = np.zeros(len(self.sets))
        plays = np.zeros((len(self.sets), *self._patterns.shape))
        column = 1
        for number, (kind, arm) in enumerate(self._pairs):
            weights[number] = values[column]
            plays[number, kind, arm] = values[column + 1 : column + 1 + len(kind)]
            column += 1 + len(kind)
        return weights, plays


def fillable_sets(graph: BatchedGraph) -> BoolArray:
    """Return all sets of arms that can be open at once, (n_sets, n_arms): Hall's condition."""
    patterns, counts, min_crowd = graph
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


def column_pricing(graph: BatchedGraph) -> TrialPricing | MilpPricing:
    """Return the exact pricing that suits the number of wanted arms."""
    few = graph.patterns.any(axis=0).sum() <= _MAX_TRIED_ARMS
    return TrialPricing(graph) if few else MilpPricing(graph)


class TrialPricing:
    """Pricing by trying all sets that can be filled."""

    def __init__(self, graph: BatchedGraph) -> None:
        self._patterns, counts, min_crowd = graph
        n_types, n_arms = self._patterns.shape
        self.sets = fillable_sets(graph)
        self._kind, self._arm = np.nonzero(self._patterns)
        n_pairs = len(self._kind)
        self._program = LinearProgram(
            gains=np.zeros(n_pairs),
            upper=np.ones(n_pairs),
            row_lower=np.full(n_types + n_arms, -np.inf),
            row_upper=np.concatenate([np.ones(n_types), np.full(n_arms, np.inf)]),
            matrix=Columns(
                2 * np.arange(n_pairs + 1),
                np.stack([self._kind, n_types + self._arm], axis=1).ravel(),
                np.stack([np.ones(n_pairs), counts[self._kind] / min_crowd], axis=1).ravel(),
            ),
        )

    def best(
        self, prices: FloatArray, *, above: float, seconds: float
    ) -> tuple[list[BoolArray], float]:
        """Return sets of value more than ``above``, and an upper bound on every set's value."""
        end = monotonic() + seconds
        gains = np.where(self._patterns, prices, -np.inf)
        # Without the crowds, every type would play its most valuable open arm, or none.
        bounds = np.array(
            [np.maximum(0.0, gains[:, open_arms].max(axis=1)).sum() for open_arms in self.sets]
        )
        better: list[BoolArray] = []
        bound = above
        for number in np.argsort(-bounds, kind="stable"):
            if bounds[number] <= above or len(better) == _SETS_AT_ONCE or monotonic() > end:
                bound = max(bound, float(bounds[number]))
                break
            value = self.value(prices, self.sets[number])
            bound = max(bound, value)
            if value > above:
                better.append(self.sets[number])
        return better, bound

    def value(self, prices: FloatArray, open_arms: BoolArray) -> float:
        """Return the largest sum of prices·plays with exactly these arms open."""
        self._program.set_gains(prices[self._kind, self._arm])
        self._program.set_upper(np.arange(len(self._kind)), open_arms[self._arm].astype(float))
        first = len(self._patterns)
        for arm, is_open in enumerate(open_arms):
            lower = 1.0 if is_open else -np.inf
            self._program.highs.changeRowBounds(first + arm, lower, np.inf)
        return self._program.solve()


class MilpPricing:
    """Pricing by a MILP that decides which arms to open."""

    def __init__(self, graph: BatchedGraph) -> None:
        patterns, counts, min_crowd = graph
        n_types, n_arms = patterns.shape
        self._n_arms = n_arms
        self._kind, self._arm = kind, arm = np.nonzero(patterns)
        n_pairs = len(kind)
        links = n_types + n_arms + np.arange(n_pairs)
        per_pair = np.stack([kind, n_types + arm, links], axis=1).ravel()
        per_arm = [np.append(n_types + one, links[arm == one]) for one in range(n_arms)]
        users = np.stack([np.ones(n_pairs), counts[kind] / min_crowd, np.ones(n_pairs)], axis=1)
        # A type plays at most 1 in all; an open arm has its crowd; only open arms are played.
        none, infinite = np.zeros(n_arms), np.full(n_arms, np.inf)
        self._program = LinearProgram(
            gains=np.zeros(n_pairs + n_arms),
            upper=np.ones(n_pairs + n_arms),
            row_lower=np.concatenate([np.full(n_types, -np.inf), none, np.full(n_pairs, -np.inf)]),
            row_upper=np.concatenate([np.ones(n_types), infinite, np.zeros(n_pairs)]),
            matrix=Columns(
                np.cumsum([0] + [3] * n_pairs + [len(rows) for rows in per_arm]),
                np.concatenate([per_pair, *per_arm]),
                np.append(users.ravel(), -np.ones(sum(map(len, per_arm)))),
            ),
            n_integer=n_arms,
        )

    def best(
        self, prices: FloatArray, *, above: float, seconds: float
    ) -> tuple[list[BoolArray], float]:
        """Return a set of value more than ``above``, and an upper bound on every set's value."""
        highs = self._program.highs
        self._program.set_gains(prices[self._kind, self._arm])
        highs.setOptionValue("time_limit", highs.getRunTime() + max(seconds, 0.1))
        highs.run()
        info = highs.getInfo()
        bound = max(above, float(info.mip_dual_bound))
        if not above < info.objective_function_value < np.inf:
            return [], bound
        return [self._program.values()[-self._n_arms :] > 0.5], bound
