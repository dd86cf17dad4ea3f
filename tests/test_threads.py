"""Linear algebra on one thread; very many users on several, with the same decisions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_info, threadpool_limits

from shoal.model import Feedback, Plan, Problem
from shoal.policies.shoal.joint.posterior import JointPosterior
from shoal.policies.shoal.population.policy import PopulationPolicy
from shoal.threads import MIN_RANGE, in_ranges, one_thread


def _threads() -> list[int]:
    """Return the threads of NumPy's linear algebra; SciPy has a library of its own."""
    found: list[int] = [
        library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas" and "numpy" in library["filepath"]
    ]
    return found


def test_what_is_decorated_runs_on_one_thread_and_nothing_else_does() -> None:
    with threadpool_limits(2, user_api="blas"):
        assert one_thread(_threads)() == [1]
        assert _threads() == [2]


def test_the_spread_is_learnt_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[list[int]] = []
    eigh = np.linalg.eigh

    def watched(matrix: NDArray[np.float64]) -> object:
        used.append(_threads())
        return eigh(matrix)

    monkeypatch.setattr(np.linalg, "eigh", watched)
    problem = Problem(4, 1, 2)
    plan = Plan([0] * 4, [0, 0, 1, 1], problem=problem)
    told = Feedback(np.ones(2), np.ones(2, np.int32), np.ones(4, np.int32))
    with threadpool_limits(2, user_api="blas"):
        JointPosterior(problem).absorb(plan, told)
    assert used == [[1]]


@pytest.mark.parametrize("n_cores", [1, 2, 3, 64])
@pytest.mark.parametrize("n", [1, MIN_RANGE, 2 * MIN_RANGE - 1, 7 * MIN_RANGE + 3])
def test_ranges_cover_all_once_and_are_not_small(
    n: int, n_cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.threads.n_cores", lambda: n_cores)
    ranges: list[tuple[int, int]] = []
    in_ranges(n, lambda first, end: ranges.append((first, end)))
    ranges.sort()
    assert [ranges[0][0], ranges[-1][1]] == [0, n]
    assert all(end == first for (_, end), (first, _) in pairwise(ranges))
    assert len(ranges) <= n_cores
    assert len(ranges) == 1 or min(end - first for first, end in ranges) >= MIN_RANGE


def test_what_fails_in_a_thread_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.threads.n_cores", lambda: 2)

    def work(first: int, end: int) -> None:
        if first > 0:
            raise ValueError("the second range")

    with pytest.raises(ValueError, match="the second range"):
        in_ranges(2 * MIN_RANGE, work)


@pytest.mark.slow
def test_threads_change_no_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(2 * MIN_RANGE, 3, 10, horizon=100)
    plans = []
    for n_cores in (1, 2):
        monkeypatch.setattr("shoal.threads.n_cores", lambda n=n_cores: n)
        policy = PopulationPolicy(problem, rng=np.random.default_rng(1))
        for _ in range(3):
            plan = policy.ask()
            sizes = np.bincount(plan.groups[plan.groups >= 0])
            totals = np.random.default_rng(2).binomial(sizes, 0.3).astype(float)
            reported = (plan.groups >= 0).astype(np.int64)
            policy.tell(Feedback(totals, np.ones(sizes.size, np.int64), reported))
        plans.append(policy.ask())
    np.testing.assert_array_equal(plans[0].arms, plans[1].arms)
    np.testing.assert_array_equal(plans[0].groups, plans[1].groups)
