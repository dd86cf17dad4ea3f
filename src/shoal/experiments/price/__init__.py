"""The price of anonymity: what each least group size costs, and a recommendation."""

from shoal.experiments.price.costs import Cost, Price
from shoal.experiments.price.run import price

__all__ = ["Cost", "Price", "price"]
