"""What the present code computes, each group once a session: all its tests are on one worker."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from tests.recordings.pinned import Recording, compute
from tests.recordings.surface import as_user
from tests.recordings.surface import postgres as postgres
from tests.support.arithmetic import PINNED

POSTGRES = "service on PostgreSQL"


@pytest.fixture(scope="session")
def computed(request: pytest.FixtureRequest) -> Callable[[str], Recording]:
    """Return a function from a group to what it computes now."""
    if not PINNED:
        pytest.skip("recordings are of x86-64 processors; run them on one")

    def run(group: str) -> Recording:
        if group == POSTGRES:
            server: str = request.getfixturevalue("postgres")
            return compute("service", *(as_user(server, r) for r in ("aggregator", "learner")))
        return compute(group)

    @cache
    def get(group: str) -> Recording:
        try:
            return run(group)
        except RuntimeError as error:  # once, not for every key
            return {"failed": str(error)}

    return get
