"""The LP solver, HiGHS, as the exact methods use it: silent, single and warm from run to run."""

from __future__ import annotations

from collections.abc import Callable

import highspy

_make: Callable[[], highspy.Highs] = highspy.Highs


def quiet_solver() -> highspy.Highs:
    """Return a solver without output; without presolve, so that a solve starts where one ended."""
    solver = _make()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("presolve", "off")
    solver.setOptionValue("threads", 1)
    return solver


def solve(solver: highspy.Highs) -> None:
    """Run the solver on a program that is known to have an optimum."""
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"HiGHS must find an optimum; got {solver.getModelStatus()}.")
