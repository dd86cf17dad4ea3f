"""The families of hard instances behind the lower bounds (Theorems 3, 4 and 5 and their proofs).

``n_users``, ``n_arms``, ``min_group_size``, ``horizon`` and ``gap`` are N, K, C, T and epsilon.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.arrays import FloatArray
from shoal.errors import InvalidInputError, UnknownNameError
from shoal.model import Problem
from shoal.model.numbers import generator, whole_number


@dataclass(frozen=True, slots=True)
class Family:
    """What a family fixes; None where it is free."""

    theorem: int
    rewards: str
    n_users: int | None = None
    n_arms: int | None = None
    min_group_size: int | None = None


FAMILIES: Final[dict[str, Family]] = {
    "main": Family(3, "gaussian"),
    "no-clusters": Family(4, "bernoulli", n_users=3, n_arms=3, min_group_size=2),
    "too-few-users": Family(5, "deterministic", n_users=2, n_arms=2, min_group_size=2),
}


def lower_bound(
    family: str,
    *,
    rng: np.random.Generator,
    n_users: int | None = None,
    n_arms: int | None = None,
    min_group_size: int | None = None,
    horizon: int | None = None,
    gap: float | None = None,
) -> FloatArray:
    """Draw the means of a random member of a family of hard instances.

    Parameters
    ----------
    family
        "main": each user has one favourite arm, uniformly at random, of mean sqrt(C / T) above
        the others' 0, with Gaussian rewards; needs all four of the problem's numbers.
        "no-clusters": N = K = 3 and C = 2; one user alone likes an arm, and to tell the other
        two apart costs that user. Needs ``horizon`` or ``gap``.
        "too-few-users": N = K = C = 2; no total tells the two members of the family apart.
    n_users, n_arms, min_group_size
        Free for "main" only; elsewhere they may be left out.
    horizon
        At least C for "main", so that its mean is at most 1, and 8 for "no-clusters".
    gap
        Only of "no-clusters": the distance of a mean from one half, T^(-1/3) by default.

    Examples
    --------
    >>> lower_bound("no-clusters", gap=0.1, rng=np.random.default_rng(0))
    array([[1. , 0. , 0. ],
           [0. , 0.6, 0.4],
           [0. , 0.4, 0.6]])
    """
    rng = generator("rng", rng)
    if family not in FAMILIES:
        raise UnknownNameError("family", family, FAMILIES)
    sizes = {"n_users": n_users, "n_arms": n_arms, "min_group_size": min_group_size}
    for name, value in sizes.items():
        fixed = getattr(FAMILIES[family], name)
        if fixed is not None and value not in (None, fixed):
            raise InvalidInputError(f"{name} must be {fixed} for the {family} family; got {value}.")
    if gap is not None and family != "no-clusters":
        raise InvalidInputError(f"gap must be left out for the {family} family; got {gap}.")
    if family == "main":
        users, arms, min_size = (whole_number(name, value) for name, value in sizes.items())
        problem = Problem(users, arms, min_size, whole_number("horizon", horizon))
        rounds = whole_number("horizon", problem.horizon, minimum=min_size)
        means = np.zeros((users, arms))
        means[np.arange(users), rng.integers(arms, size=users)] = np.sqrt(min_size / rounds)
        return means
    if family == "no-clusters":
        signed = _gap(horizon, gap) * (1 if rng.integers(2) else -1)
        above, below = 0.5 + signed, 0.5 - signed
        return np.array([[1.0, 0.0, 0.0], [0.0, above, below], [0.0, below, above]])
    return np.eye(2) if rng.integers(2) else np.eye(2)[::-1].copy()


def _gap(horizon: int | None, gap: float | None) -> float:
    if gap is None:
        if horizon is None:
            raise InvalidInputError("horizon or gap must be set for the no-clusters family.")
        # From 8 rounds on, T^(-1/3) is at most one half.
        return float(whole_number("horizon", horizon, minimum=8) ** (-1 / 3))
    if not 0.0 < gap <= 0.5:
        raise InvalidInputError(f"gap must be above 0 and at most 0.5; got {gap}.")
    return gap
