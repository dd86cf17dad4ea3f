"""Policies against environments: single runs, comparisons, tuning, and their records."""

from shoal.experiments.comparison import compare
from shoal.experiments.costs import Cost, Interval, Price
from shoal.experiments.pricing import price
from shoal.experiments.records import Comparison
from shoal.experiments.run import Run, simulate
from shoal.experiments.shards import simulate_shards

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
