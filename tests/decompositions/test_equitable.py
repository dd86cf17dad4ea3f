import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.decompositions.equitable import equitable, fit_loads


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.tuples(st.integers(1, 25), st.integers(1, 7), st.integers(1, 40), st.integers(0, 2**32)))
def test_spreads_any_whole_shares_with_even_loads(case: tuple[int, int, int, int]) -> None:
    n_users, n_arms, n_slots, seed = case
    rng = np.random.default_rng(seed)
    shares = rng.multinomial(n_slots, rng.dirichlet(np.full(n_arms, 0.4)), size=n_users)
    rows = equitable(shares, n_slots)
    plays = (rows[:, :, None] == np.arange(n_arms)).sum(axis=0)
    np.testing.assert_array_equal(plays, shares)
    loads = (rows[:, :, None] == np.arange(n_arms)).sum(axis=1)
    mean = shares.sum(axis=0) / n_slots
    assert (loads >= np.floor(mean)).all()
    assert (loads <= np.ceil(mean)).all()


def test_exchanges_go_along_a_chain_of_users() -> None:
    # Only users on arm k may move to arm k+1, so all loads must shift along the whole chain.
    n_arms = 6
    allowed = np.zeros((n_arms, n_arms), bool)
    for user in range(n_arms - 1):
        allowed[user, user : user + 2] = True
    allowed[-1, 0] = True
    chosen = np.eye(n_arms, dtype=bool)
    chosen[-1] = np.eye(n_arms, dtype=bool)[0]
    ones = np.ones(n_arms, np.int64)
    assert fit_loads(chosen, allowed, ones, ones)
    np.testing.assert_array_equal(chosen.sum(axis=0), ones)
    np.testing.assert_array_equal(chosen.sum(axis=1), ones)
    assert not (chosen & ~allowed).any()


def test_says_when_no_choice_fits_the_bounds() -> None:
    chosen = np.array([[True, False], [True, False]])
    one = np.ones(2, np.int64)
    assert not fit_loads(chosen.copy(), chosen.copy(), one, one)
