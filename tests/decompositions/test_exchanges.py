import numpy as np

from shoal.decompositions.exchanges import fit_loads


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
