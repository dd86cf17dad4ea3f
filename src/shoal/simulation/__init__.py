"""Policies against environments: single runs, comparisons, tuning, and their records."""

from shoal.simulation.comparison import compare
from shoal.simulation.records import Comparison
from shoal.simulation.run import Run, simulate

__all__ = ["Comparison", "Run", "compare", "simulate"]
