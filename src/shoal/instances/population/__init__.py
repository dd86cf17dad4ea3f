"""What people are like, from a log: a posterior over populations, never a point."""

from shoal.instances.population.estimate import Population, Range, estimate_population
from shoal.instances.population.held_out import HeldOut
from shoal.instances.population.pairs import PairTotals
from shoal.instances.population.worlds import World

__all__ = ["HeldOut", "PairTotals", "Population", "Range", "World", "estimate_population"]
