"""A refusal names what was refused and what the rule allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.live import Live, serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal.client import Client, ServiceError

DEFINITION: dict[str, Any] = {"arms": ["a", "b"], "min_group_size": 5, "seats": 20}

REFUSALS: dict[str, tuple[str, Callable[[Client], object], str]] = {
    "unknown-campaign": ("operator", lambda c: c.campaign("nwes"), "Got 'nwes'."),
    "below-floor": (
        "operator",
        lambda c: c.create_campaign("low", **DEFINITION | {"min_group_size": 4}),
        "It must be at least 5; got 4.",
    ),
    "campaign-exists": (
        "operator",
        lambda c: c.create_campaign("news", **DEFINITION | {"seats": 30, "seed": 1}),
        "'news' differs in seats, seed.",
    ),
    "campaign-full": (
        "operator",
        lambda c: c.enrol("news", users(25)),
        "New users must be at most 20 of its 20; got 25.",
    ),
    "arms-full": ("operator", lambda c: c.add_arm("news", "c"), "arm_slots is 2."),
    "unknown-arm": ("operator", lambda c: c.retire_arm("news", "c"), "Got 'c'."),
    "unknown-token": ("admin", lambda c: c.rotate("phone"), "Got 'phone'."),
    "last-admin": ("admin", lambda c: c.revoke("admin"), "It is 'admin'."),
    "invalid-input": (
        "operator",
        lambda c: c.abandon("news", through=7),
        "through must be a round: there is none yet; got 7.",
    ),
    "wrong-role": ("app", lambda c: c.campaigns(), "It must be operator or analyst; got app."),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_names_what_was_refused(name: str, sqlite_stores: Stores) -> None:
    role, call, detail = REFUSALS[name]
    with serve(sqlite_stores, floor=5) as live:
        begin(live)
        with pytest.raises(ServiceError) as caught:
            call(live.client(role))
    assert caught.value.name == name
    assert str(caught.value).endswith(detail)


def begin(live: Live) -> None:
    live.client("operator").create_campaign("news", **DEFINITION)
