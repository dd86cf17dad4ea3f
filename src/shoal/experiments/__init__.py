"""Policies against environments: single runs, comparisons, tuning, prices, and their records."""

from shoal.experiments.comparison import Comparison, compare
from shoal.experiments.price import Cost, Price, price
from shoal.experiments.record import Run
from shoal.experiments.run import simulate
from shoal.experiments.setting import Setting
from shoal.experiments.shards import simulate_shards
from shoal.experiments.statistics import Interval

__all__ = [
    "Comparison",
    "Cost",
    "Interval",
    "Price",
    "Run",
    "Setting",
    "compare",
    "price",
    "simulate",
    "simulate_shards",
]
