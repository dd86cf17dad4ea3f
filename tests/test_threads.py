"""Linear algebra on one thread, and on as many as before afterwards."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_info, threadpool_limits

from shoal.model import Feedback, Plan, Problem
from shoal.policies.shoal.joint.posterior import JointPosterior
from shoal.threads import one_thread


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
