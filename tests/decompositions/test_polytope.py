from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from shoal.decompositions.polytope import in_open_polytope, in_polytope
from shoal.errors import InvalidInputError


def vertices(n_users: int, n_arms: int, min_crowd: int) -> NDArray[np.float64]:
    """All vertices of P_C, flat."""
    arms = np.array(list(product(range(-1, n_arms), repeat=n_users)))
    points = (arms[:, :, None] == np.arange(n_arms)).astype(float)
    loads = points.sum(axis=1)
    fine: NDArray[np.float64] = points[((loads == 0) | (loads >= min_crowd)).all(axis=1)]
    return fine.reshape(-1, n_users * n_arms)


points = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 4)).flatmap(
    lambda case: st.tuples(
        st.just(case[2]),
        st.lists(
            st.lists(st.integers(0, 2), min_size=case[1], max_size=case[1]),
            min_size=case[0],
            max_size=case[0],
        ),
        st.integers(1, 3),
    )
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(points)
def test_agrees_with_all_vertices_and_proves_it(case: tuple[int, list[list[int]], int]) -> None:
    total, rows, min_crowd = case
    shares = np.array(rows)
    corners = vertices(shares.shape[0], shares.shape[1], min_crowd)
    answer = linprog(
        np.zeros(len(corners)),
        A_eq=np.vstack([corners.T, np.ones(len(corners))]),
        b_eq=np.append(shares.ravel() / total, 1.0),
    )
    membership = in_polytope(shares, total, min_crowd=min_crowd)
    assert membership.inside == (answer.status == 0)
    if membership.prices is not None and membership.bound is not None:
        assert (corners @ membership.prices.ravel()).max() <= membership.bound + 1e-6
        assert (membership.prices * shares).sum() / total > membership.bound
    else:
        assert membership.weights is not None
        assert membership.points is not None
        assert membership.open_sets is not None
        assert membership.weights.sum() <= 1 + 1e-6
        mixed = np.tensordot(membership.weights, membership.points, axes=1)
        np.testing.assert_allclose(mixed, shares / total, atol=1e-6)
        for opened, point in zip(membership.open_sets, membership.points, strict=True):
            assert point.sum(axis=1).max() <= 1 + 1e-6
            assert (point.sum(axis=0)[opened] >= min_crowd - 1e-6).all()
            assert not point[:, ~opened].any()


@settings(max_examples=150, deadline=None, derandomize=True)
@given(points, st.integers(0, 7))
def test_equation_one_decides_with_a_proof_either_way(
    case: tuple[int, list[list[int]], int], code: int
) -> None:
    total, rows, min_crowd = case
    shares = np.array(rows)
    opened = (code >> np.arange(shares.shape[1]) & 1).astype(bool)
    membership = in_open_polytope(shares, total, opened, min_crowd=min_crowd)
    corners = vertices(shares.shape[0], shares.shape[1], min_crowd)
    loads = corners.reshape(-1, *shares.shape).sum(axis=1)
    corners = corners[((loads > 0) == opened).all(axis=1)]
    if membership.vertices is not None:
        assert membership
        played = membership.vertices.assignments[:, :, None] == np.arange(shares.shape[1])
        assert ((played.sum(axis=1) >= min_crowd) == opened).all()
        weighted = (membership.vertices.repeats[:, None, None] * played).sum(axis=0)
        np.testing.assert_array_equal(weighted, shares)
        assert membership.vertices.total == total
    else:
        assert membership.prices is not None
        assert membership.bound is not None
        assert (corners @ membership.prices.ravel() <= membership.bound).all()
        assert (membership.prices * shares).sum() / total > membership.bound


def test_refuses_points_by_name() -> None:
    with pytest.raises(InvalidInputError, match="shares must hold whole numbers"):
        in_polytope([[0.5, 0.5]], 1, min_crowd=1)
    with pytest.raises(InvalidInputError, match="shares must have shape"):
        in_polytope([1, 2], 1, min_crowd=1)
    with pytest.raises(InvalidInputError, match=r"open_arms must have shape \(2,\)"):
        in_open_polytope([[1, 1]], 2, [True], min_crowd=1)
