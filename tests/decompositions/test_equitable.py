import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.decompositions.equitable import equitable


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
