"""A service with something to show on the pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.live import Live, learning, serve
from tests.support.stores import Stores
from tests.support.visits import CAMPAIGN, Visitor, create, play


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
def admin(live: Live) -> Iterator[Visitor]:
    with Visitor(live, "admin") as visitor:
        yield visitor


@pytest.fixture(scope="module")
def operator(live: Live) -> Iterator[Visitor]:
    with Visitor(live, "operator") as visitor:
        yield visitor
