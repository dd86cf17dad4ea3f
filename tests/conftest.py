from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20220914)


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[str]:
    """The address of a Ray cluster of two nodes with one core each."""
    from tests.engines.cluster import two_nodes

    with two_nodes() as address:
        yield address
