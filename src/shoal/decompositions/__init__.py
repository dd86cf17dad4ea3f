"""Anonymous decompositions (Sections 3.2 and 3.4): demand for feedback, met by assignments.

``decompose`` runs any of the methods, ``is_decomposition`` verifies what it returns.
"""

from shoal.decompositions.certificate import Certificate, is_decomposition
from shoal.decompositions.decomposition import Decomposition
from shoal.decompositions.demand import cluster_size, is_batched, serviceable
from shoal.decompositions.euler import euler_decomposition
from shoal.decompositions.greedy import greedy_decomposition
from shoal.decompositions.home_away import home_away_decomposition
from shoal.decompositions.methods import METHODS, Method, decompose
from shoal.decompositions.random import random_decomposition

__all__ = [
    "METHODS",
    "Certificate",
    "Decomposition",
    "Method",
    "cluster_size",
    "decompose",
    "euler_decomposition",
    "greedy_decomposition",
    "home_away_decomposition",
    "is_batched",
    "is_decomposition",
    "random_decomposition",
    "serviceable",
]
