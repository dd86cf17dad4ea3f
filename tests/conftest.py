from __future__ import annotations

import signal
from collections.abc import Iterator

import numpy as np
import pytest

# A shell that runs the tests in the background ignores Ctrl-C for them and for all they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20220914)


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[str]:
    """The address of a Ray cluster of two nodes with one core each."""
    from tests.engines.cluster import two_nodes

    with two_nodes() as address:
        yield address
