"""What several tests of policies need."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from shoal.policies import own


@pytest.fixture
def entry_point(monkeypatch: pytest.MonkeyPatch) -> str:
    points = {
        name: EntryPoint(name, "tests.support.policies:Greedy", own.GROUP)
        for name in ("their-greedy", "shoal")
    }
    monkeypatch.setattr("shoal.policies.registry.installed", lambda: points)
    monkeypatch.setattr("shoal.policies.own.installed", lambda: points)
    return "their-greedy"
