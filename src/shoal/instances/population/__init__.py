"""What people are like, from a log: a posterior over populations, never a point."""

from shoal.instances.population.estimate import HeldOut, Population, Range, estimate_population
from shoal.instances.population.pairs import PairTotals
from shoal.instances.population.worlds import World

__all__ = ["HeldOut", "PairTotals", "Population", "Range", "World", "estimate_population"]
