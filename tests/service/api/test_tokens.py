"""Tokens end, are rotated, and leave a trace of their use; who did what is on record."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from tests.support.live import serve
from tests.support.service import TestClock, users
from tests.support.stores import Stores

from shoal.client import Client, ServiceError
from shoal.service.aggregator import audit_log
from shoal.service.store import DAY, HOUR


def test_a_token_ends_when_it_was_said_to(stores: Stores) -> None:
    clock = TestClock()
    with serve(stores, clock=clock) as live:
        token = live.client("admin").token("guest", "analyst", campaigns=["*"], expires_days=2)
        with Client(live.url, token, patience=0.2) as guest:
            clock.now += 2 * DAY - 1
            assert guest.campaigns() == []
            clock.now += 1
            with pytest.raises(ServiceError) as caught:
                guest.campaigns()
            assert caught.value.name == "unauthenticated"


def test_a_rotated_tokens_former_secret_works_for_the_grace(stores: Stores) -> None:
    clock = TestClock()
    with serve(stores, clock=clock) as live:
        admin = live.client("admin")
        new = admin.rotate("analyst", grace_hours=3)
        former, later = live.client("analyst"), Client(live.url, new)
        assert former.campaigns() == later.campaigns() == []
        clock.now += 3 * HOUR
        assert later.campaigns() == []
        with pytest.raises(ServiceError) as caught:
            former.campaigns()
        assert caught.value.name == "unauthenticated"
        later.close()
        with pytest.raises(ServiceError) as caught:
            admin.rotate("nobody")
        assert caught.value.name == "unknown-token"


def test_the_day_of_the_last_use_is_kept_and_nothing_finer(stores: Stores) -> None:
    clock = TestClock()
    with serve(stores, clock=clock) as live:
        admin = live.client("admin")
        assert admin.tokens()["app"].last_used is None
        with pytest.raises(ServiceError):
            live.client("app").assignments("none")
        day = clock.now - clock.now % DAY
        assert admin.tokens()["app"].last_used == day
        clock.now += HOUR
        with pytest.raises(ServiceError):
            live.client("app").assignments("none")
        assert admin.tokens()["app"].last_used == day
        made = admin.tokens()["app"]
        assert (made.role, made.campaigns, made.created_at) == ("app", ["*"], clock.now - HOUR)


def test_the_day_of_the_last_use_outlives_a_restart(stores: Stores) -> None:
    clock = TestClock()
    with serve(stores, clock=clock) as live, pytest.raises(ServiceError):
        live.client("app").assignments("none")
    with serve(stores, clock=clock, tokens=live.tokens) as live:
        last_used = live.client("admin").tokens()["app"].last_used
    assert last_used == clock.now - clock.now % DAY


def test_a_bound_token_must_say_where_and_the_last_admin_stays(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        admin = live.client("admin")
        for role in ("app", "analyst", "learner"):
            with pytest.raises(ServiceError, match="campaigns must name"):
                admin.token("x", role)
        with pytest.raises(ServiceError, match="succeeds must be left out"):
            admin.token("x", "analyst", campaigns=["*"], succeeds="app")
        for role in ("admin", "monitor"):  # one makes tokens of all campaigns, one sees them all
            with pytest.raises(ServiceError, match=f"left out for a token of role {role}; got 'n"):
                admin.token("x", role, campaigns=["news"])
            admin.token("x", role, campaigns=["*"])
        admin.revoke("x")
        for attempt in (
            lambda: admin.revoke("admin"),
            lambda: admin.token("admin", "operator"),
        ):
            with pytest.raises(ServiceError) as caught:
                attempt()
            assert caught.value.name == "last-admin"
        admin.token("second", "admin")
        admin.revoke("admin")


def test_threat_32_nobody_can_tell_who_did_it(stores: Stores) -> None:
    """Every act of an operator and of an admin is found, with its token; no user is named."""
    with serve(stores) as live:
        operator, admin = live.client("operator"), live.client("admin")
        operator.create_campaign("news", arms=["a", "b"], arm_slots=3, min_group_size=3, seats=12)
        operator.enrol("news", users(12))
        operator.add_arm("news", "c")
        operator.retire_arm("news", "b")
        operator.open_round("news", 1, wait=0)
        live.work()
        live.client("app").report("news", 1, dict.fromkeys(users(12), 1.0))
        operator.close_round("news", 1)
        operator.withdraw("news", ["user-3"], erase=True)
        operator.open_round("news", 2, wait=0)
        operator.abandon("news", through=2)
        admin.token("phone", "app", campaigns=["news"])
        admin.rotate("phone")
        admin.revoke("phone")
        found = [(e.actor, e.action) for e in admin.audit() if e.actor != "(service)"]
        assert found == [
            ("operator", "campaign.create"), ("operator", "users.move"), ("operator", "arm.add"),
            ("operator", "arm.retire"), ("operator", "round.open"), ("learner", "round.plan"),
            ("operator", "round.close"), ("operator", "users.move"), ("operator", "round.open"),
            ("operator", "round.abandon"), ("admin", "token.create"), ("admin", "token.rotate"),
            ("admin", "token.revoke"),
        ]  # fmt: skip
        assert not any("user-" in str(entry) for entry in admin.audit())
        bound = admin.token("bound", "operator", campaigns=["other"])
        with Client(live.url, bound) as other:
            assert other.audit() == []
            seen = other.tokens()
            assert "phone" not in seen
            assert seen["bound"].campaigns == ["other"]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE audit SET actor = 'somebody' WHERE number = 3",
        "DELETE FROM audit WHERE number = 3",
        "UPDATE audit SET details = '{}' WHERE number = 1",
    ],
)
def test_threat_32_the_audit_log_is_append_only_and_a_change_breaks_its_chain(
    stores: Stores, damage: str
) -> None:
    with serve(stores) as live:
        database = live.aggregator.database
        with database.read() as connection:
            assert list(audit_log.check(connection)) == []
        with pytest.raises(DBAPIError, match="append-only"), database.write() as connection:
            connection.execute(text(damage))
        with database.write() as connection:  # by someone who owns the database
            if connection.dialect.name == "sqlite":
                connection.execute(text("DROP TRIGGER audit_UPDATE"))
                connection.execute(text("DROP TRIGGER audit_DELETE"))
            else:
                connection.execute(text("DROP TRIGGER audit_append_only ON audit"))
            connection.execute(text(damage))
        with database.read() as connection:
            assert len(list(audit_log.check(connection))) == 1
