"""A browser for the pages, and a service with something to show on them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from tests.support.live import Live, learning, serve
from tests.support.stores import Stores
from tests.support.visits import CAMPAIGN, SECONDS, Visitor, create, play

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip


@pytest.fixture(scope="module")  # while it is open, no other event loop can run in this thread
def browser() -> Iterator[Browser]:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        needed = "the pages are tested in Chromium; install it: sudo apt-get install chromium"
        if "CI" in os.environ or "MAKELEVEL" in os.environ:
            pytest.fail(needed)
        pytest.skip(needed)
    expect.set_options(timeout=SECONDS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A service with a campaign of a few released rounds; tests may go on with it."""
    folder: Path = tmp_path_factory.mktemp("stores")
    stores = Stores(f"sqlite:///{folder}/aggregator.db", f"sqlite:///{folder}/learner.db")
    with serve(stores, floor=5) as live, learning(live):
        create(live)
        for number in range(1, 7):
            play(live, number)
        live.client("operator").open_round(CAMPAIGN, 7)
        yield live


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("stores")
    stores = Stores(f"sqlite:///{folder}/aggregator.db", f"sqlite:///{folder}/learner.db")
    with serve(stores, floor=5) as running:
        create(running, "taken")
        yield running


@pytest.fixture(scope="module")
def operator(live: Live) -> Iterator[Visitor]:
    with Visitor(live, "operator") as visitor:
        yield visitor
