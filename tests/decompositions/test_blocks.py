import numpy as np

from shoal.decompositions import is_decomposition
from shoal.decompositions.blocks import blocks_decomposition


def test_uses_as_many_blocks_as_the_paper_says() -> None:
    # Four clusters of 6 users who want their own arm and the next: U = 6, C+1 = 3, K = 4.
    own = np.repeat(np.arange(4), 6)
    active = np.zeros((24, 4), bool)
    active[np.arange(24), own] = active[np.arange(24), (own + 1) % 4] = True
    decomposition = blocks_decomposition(active, 100, min_crowd=3)
    assert decomposition.total == 2 * 100
    assert is_decomposition(active, 100, decomposition, min_crowd=3)
    assert set(decomposition.assignments[0, active[:, :2].all(axis=1)].tolist()) <= {0, 1}


def test_repeats_a_block_only_as_often_as_it_is_needed() -> None:
    active = np.ones((10, 5), bool)
    decomposition = blocks_decomposition(active, 100, min_crowd=5)
    np.testing.assert_array_equal(decomposition.repeats, [20] * 5)


def test_one_block_is_the_lp_decomposition() -> None:
    active = np.ones((20, 2), bool)
    assert blocks_decomposition(active, 100, min_crowd=5).total == 100
