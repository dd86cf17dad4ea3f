"""Synthetic populations: the two classes of the paper's Appendix B, and taste clusters.

``common`` draws what all users share; by default it is ``rng``. Parts of one population are drawn
apart, each with its ``rng`` and a fresh copy of the same ``common``.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from shoal.arrays import FloatArray
from shoal.errors import InvalidInputError, UnknownNameError
from shoal.model.numbers import generator, is_number, whole_number

HIGHEST_CLUSTERED_MEAN = 0.9
"""No user of a clustered population answers more often than this."""


def uniform(
    n_users: int,
    n_arms: int,
    *,
    rng: np.random.Generator,
    common: np.random.Generator | None = None,
) -> FloatArray:
    """Draw every mean from U([0, 1]) independently (Appendix B, first class): nothing is shared.

    >>> uniform(2, 3, rng=np.random.default_rng(0)).round(2)
    array([[0.64, 0.27, 0.04],
           [0.02, 0.81, 0.91]])
    """
    rng, _ = _generators(rng, common)
    return rng.random(_shape(n_users, n_arms))


def linear(
    n_users: int,
    n_arms: int,
    *,
    rng: np.random.Generator,
    common: np.random.Generator | None = None,
    dimension: int = 10,
) -> FloatArray:
    """Draw a random direction per user and per arm (Appendix B, second class).

    A mean is (cosine + 1) / 2 of the angle between the user's and the arm's unit vector, the
    paper's 0.5 (theta_ij + 1). The arms are shared.

    >>> linear(2, 3, rng=np.random.default_rng(0), dimension=1)
    array([[1., 1., 0.],
           [0., 0., 1.]])
    """
    n_users, n_arms = _shape(n_users, n_arms)
    rng, common = _generators(rng, common)
    dimension = whole_number("dimension", dimension)
    users = _directions(n_users, dimension, rng)
    arms = _directions(n_arms, dimension, common)
    cosines = users @ arms.T  # (n_users, n_arms)
    return np.clip(0.5 * (cosines + 1.0), 0.0, 1.0)


def clustered(
    n_users: int,
    n_arms: int,
    *,
    rng: np.random.Generator,
    common: np.random.Generator | None = None,
    n_clusters: int = 6,
    rate: float = 1 / 13,
    spread: float = 0.3,
) -> FloatArray:
    """Draw users around a few tastes, with low means as real click rates are.

    Each user belongs to a cluster chosen uniformly at random. A cluster's mean on an arm is drawn
    from Beta(1, 1 / rate - 1), and each user multiplies it by exp(N(0, spread²)), up to 0.9.
    The clusters are shared.

    Parameters
    ----------
    rate
        Expected mean of a cluster on an arm, before users spread around it. The default of 1/13
        is Beta(1, 12).
    spread
        Standard deviation of the logarithm of a user's factor on each arm.
    """
    n_users, n_arms = _shape(n_users, n_arms)
    rng, common = _generators(rng, common)
    n_clusters = whole_number("n_clusters", n_clusters)
    if not is_number(rate) or not 0.0 < rate < 1.0:
        raise InvalidInputError(f"rate must lie strictly between 0 and 1; got {rate}.")
    if not is_number(spread) or not 0.0 <= spread < np.inf:
        raise InvalidInputError(f"spread must be finite and at least 0; got {spread!r}.")
    tastes = common.beta(1.0, 1.0 / rate - 1.0, size=(n_clusters, n_arms))
    cluster = rng.integers(n_clusters, size=n_users)
    factors = np.exp(rng.normal(0.0, spread, size=(n_users, n_arms)))
    return np.minimum(tastes[cluster] * factors, HIGHEST_CLUSTERED_MEAN)


INSTANCES: Final[dict[str, Callable[..., FloatArray]]] = {
    "uniform": uniform,
    "linear": linear,
    "clustered": clustered,
}


def instance(
    name: str,
    n_users: int,
    n_arms: int,
    *,
    rng: np.random.Generator,
    common: np.random.Generator | None = None,
) -> FloatArray:
    """Draw the means of a class by its name.

    >>> instance("linear", 50, 5, rng=np.random.default_rng(0)).shape
    (50, 5)
    >>> instance("liner", 50, 5, rng=np.random.default_rng(0))
    Traceback (most recent call last):
    shoal.errors.UnknownNameError: instance must be a known name; got 'liner': \
did you mean 'linear'?
    """
    if name not in INSTANCES:
        raise UnknownNameError("instance", name, INSTANCES)
    return INSTANCES[name](n_users, n_arms, rng=rng, common=common)


def _shape(n_users: int, n_arms: int) -> tuple[int, int]:
    return whole_number("n_users", n_users), whole_number("n_arms", n_arms)


def _generators(
    rng: np.random.Generator, common: np.random.Generator | None
) -> tuple[np.random.Generator, np.random.Generator]:
    """Return what draws each user, and what draws all that users share."""
    rng = generator("rng", rng)
    return rng, rng if common is None else generator("common", common)


def _directions(n: int, dimension: int, rng: np.random.Generator) -> FloatArray:
    """Draw n unit vectors, uniform on the sphere, (n, dimension)."""
    vectors = rng.standard_normal((n, dimension))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors
