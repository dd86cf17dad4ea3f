from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.arithmetic import pin_arithmetic
from tests.support.workers import GroupScheduling, group

if TYPE_CHECKING:
    import numpy as np
    from playwright.sync_api import Browser

pin_arithmetic()
gc.disable()  # until all is imported

# A shell that runs the tests in the background ignores Ctrl-C for them and for all they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


NEEDS = {"browser": "browser", "ray_cluster": "cluster", "postgres": "postgresql"}
"""Marks of tests by the fixture that starts what they need."""
SLOW = (
    "tests/recordings/", "tests/service/test_", "tests/service/dashboard/test_browser",
    "tests/engines/test_ray", "tests/experiments/sweep/test_kills",
    "tests/client/test_distribution", "tests/cli/test_demo", "tests/cli/test_price",
    "tests/cli/test_sweep", "tests/experiments/price/test_logged", "tests/test_documentation",
    "tests/service/learner/test_resume", "tests/service/learner/test_quarantine",
    "tests/test_kernels", "tests/policies/shoal/test_learning_quality",
    "tests/service/api/test_openapi", "tests/test_site",
)  # fmt: skip
"""Files with whole systems, or many runs."""


def pytest_addoption(parser: pytest.Parser) -> None:
    left_out = "leave out what needs a browser, a cluster or PostgreSQL, and what takes long"
    parser.addoption("--quick", action="store_true", help=left_out)


def pytest_configure(config: pytest.Config) -> None:
    if config.option.quick:
        config.option.markexpr = f"not ({' or '.join([*NEEDS.values(), 'slow'])})"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing of which no test would run: that alone takes seconds in each worker."""
    place = collection_path.relative_to(config.rootpath).as_posix()
    return True if config.option.quick and place.startswith(SLOW) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by what it needs."""
    for item in items:
        names = getattr(item, "fixturenames", ())
        for fixture, mark in NEEDS.items():
            if fixture in names:
                item.add_marker(mark)
        if "[postgresql" in item.nodeid:
            item.add_marker("postgresql")
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")
        if item.nodeid.startswith("tests/recordings/") and "[policies" in item.nodeid:
            item.add_marker("kernels")
    if "PYTEST_XDIST_WORKER" in os.environ:  # what takes long first, so that no worker ends late
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """Look for garbage again, but not in what was imported: it stays until the end."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> GroupScheduling:
    """Give all tests that share something to one worker, in the order of ``items``."""
    config.option.loadscopereorder = False
    return GroupScheduling(config, log)


@pytest.fixture
def rng() -> np.random.Generator:
    import numpy as np

    return np.random.default_rng(20220914)


CLUSTER = pytest.StashKey[tuple[ExitStack, str]]()


@pytest.fixture(scope="module")
def ray_cluster(request: pytest.FixtureRequest) -> str:
    """The address of a Ray cluster of two nodes with one core each, which all its tests share."""
    from tests.support.cluster import two_nodes

    stash = request.session.stash
    if CLUSTER not in stash:
        stack = ExitStack()
        stash[CLUSTER] = stack, stack.enter_context(two_nodes())
    return stash[CLUSTER][1]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """End the cluster with the last test of its group: its ten processes are never idle."""
    try:
        return (yield)
    finally:
        stash = item.session.stash
        last = nextitem is None or group(nextitem.nodeid) != group(item.nodeid)
        if last and CLUSTER in stash:
            stash[CLUSTER][0].close()
            del stash[CLUSTER]


@pytest.fixture(scope="module")  # while it is open, no other event loop can run in this thread
def browser() -> Iterator[Browser]:
    from tests.support.browser import chromium

    with chromium() as opened:
        yield opened
