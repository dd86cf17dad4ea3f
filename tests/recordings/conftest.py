"""What the present code computes, each group once a session, however many workers there are."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tests.recordings.pinned import Recording, compute
from tests.recordings.surface import as_user
from tests.recordings.surface import postgres as postgres
from tests.support.arithmetic import PINNED

POSTGRES = "service on PostgreSQL"


@pytest.fixture(scope="session")
def computed(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Callable[[str], Recording]:
    """Return a function from a group to what it computes now."""
    if not PINNED:
        pytest.skip("recordings are of x86-64 processors; run them on one")
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of all workers

    def run(group: str) -> Recording:
        if group == POSTGRES:
            server: str = request.getfixturevalue("postgres")
            return compute("service", *(as_user(server, r) for r in ("aggregator", "learner")))
        return compute(group)

    @cache
    def get(group: str) -> Recording:
        file = folder / f"recording of {group}.json"
        with Path(f"{file}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                try:
                    found = run(group)
                except RuntimeError as error:  # once, not for every key
                    found = {"failed": str(error)}
                file.write_text(json.dumps(found), encoding="utf-8")
        recording: Recording = json.loads(file.read_text(encoding="utf-8"))
        return recording

    return get
