"""Policies against environments: single runs, comparisons, tuning, and their records."""

from shoal.simulation.comparison import compare
from shoal.simulation.costs import Cost, Interval, Price
from shoal.simulation.pricing import price
from shoal.simulation.records import Comparison
from shoal.simulation.run import Run, simulate
from shoal.simulation.shards import simulate_shards

__all__ = [
    "Comparison",
    "Cost",
    "Interval",
    "Price",
    "Run",
    "compare",
    "price",
    "simulate",
    "simulate_shards",
]
