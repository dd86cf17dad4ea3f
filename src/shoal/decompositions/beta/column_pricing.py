"""Column pricing: the set of open arms whose plays are worth most at given prices.

For prices p on (type, arm) pairs, the largest sum of p·z over the plays z of one open set. Exact
either way: for few arms all sets that their users can fill are tried, largest upper bound first,
each by a small warm LP, until no bound is left; for many arms a MILP decides which arms to open.
"""

from __future__ import annotations

from time import monotonic

import numpy as np

from shoal.arrays import BoolArray, FloatArray
from shoal.decompositions.beta.open_sets import fillable_sets
from shoal.decompositions.demand import BatchedGraph
from shoal.decompositions.solver import Columns, LinearProgram

MOST_TRIED_ARMS = 12
_SETS_AT_ONCE = 8


def column_pricing(graph: BatchedGraph) -> TrialPricing | MilpPricing:
    """Return the exact pricing that suits the number of wanted arms."""
    few = graph.patterns.any(axis=0).sum() <= MOST_TRIED_ARMS
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
