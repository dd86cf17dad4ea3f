from fractions import Fraction

import numpy as np
import pytest

from shoal.decompositions import is_batched
from shoal.decompositions.beta.search import SearchProgress, hardest_graph
from shoal.errors import InvalidInputError


@pytest.mark.parametrize(
    ("n_arms", "min_group_size", "cluster_size", "beta"),
    [(2, 1, 2, Fraction(2, 3)), (2, 2, 3, Fraction(2, 3)), (2, 1, 4, 1), (3, 1, 2, Fraction(3, 5))],
)
def test_finds_the_hardest_of_all_small_graphs(
    n_arms: int, min_group_size: int, cluster_size: int, beta: Fraction
) -> None:
    hardest = hardest_graph(
        n_arms,
        min_group_size,
        cluster_size,
        seconds=60,
        rng=np.random.default_rng(0),
        max_graphs=200,
    )
    assert hardest.exhausted
    assert hardest.proof.tight
    assert hardest.proof.lower == beta
    assert hardest.proof.lower >= hardest.guarantee
    assert is_batched(hardest.active, cluster_size)


def test_goes_on_where_graphs_are_too_many_to_try_all() -> None:
    hardest = hardest_graph(4, 1, 2, seconds=60, rng=np.random.default_rng(0), max_graphs=150)
    assert not hardest.exhausted
    assert is_batched(hardest.active, 2)
    assert hardest.guarantee == Fraction(1, 4)
    assert hardest.proof.lower == Fraction(4, 7)


def test_shows_progress_that_only_gets_better() -> None:
    reports: list[SearchProgress] = []
    hardest_graph(
        2, 1, 2, seconds=60, rng=np.random.default_rng(0), max_graphs=50, on_progress=reports.append
    )
    betas = [progress.beta for progress in reports]
    assert betas == sorted(betas, reverse=True)
    assert reports[0].n_tried >= 1


def test_refuses_a_class_of_graphs_that_can_not_be_searched() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInputError, match=r"n_arms must be between 2 and 5 .* got 6"):
        hardest_graph(6, 1, 2, seconds=1, rng=rng)
    with pytest.raises(InvalidInputError, match=r"cluster_size must be a whole .* at least 3"):
        hardest_graph(3, 2, 2, seconds=1, rng=rng)
