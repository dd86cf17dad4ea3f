from __future__ import annotations

import re

from tests.support.live import Live
from tests.support.visits import Visitor


def test_tokens_are_shown_once_replaced_after_a_question_and_revoked(
    live: Live, admin: Visitor
) -> None:
    made = admin.send("/tokens", name="phone", role="app", campaigns="*").text
    token = re.search(r"shoal\.phone\.[\w-]{43}", made)
    assert token
    assert live.aggregator.access.role_of(token[0]) == "app"
    assert token[0] not in admin.http.get("/tokens").text
    assert (
        "Replace the token phone?"
        in admin.send("/tokens", name="phone", role="app", campaigns="*").text
    )
    assert live.aggregator.access.role_of(token[0]) == "app"
    admin.send("/tokens", name="phone", role="app", campaigns="*", sure="yes")
    assert live.aggregator.access.role_of(token[0]) is None
    assert "Revoke the token phone?" in admin.send("/tokens/revoke", name="phone").text
    assert "phone" in live.aggregator.access.roles()
    assert admin.send("/tokens/revoke", name="phone", sure="yes").status_code == 303
    assert "phone" not in live.aggregator.access.roles()
    for path in ("/tokens/revoke", "/tokens"):
        asked = admin.send(path, name="learner", role="learner", campaigns="*").text
        assert "the learner plans no rounds" in asked
        assert "plans no rounds" not in admin.send(path, name="app", role="app", campaigns="*").text
    assert admin.send("/tokens", name="a b", role="app", campaigns="*").status_code == 422
    assert admin.send("/tokens", name="a", role="king").status_code == 422
    bound = admin.send("/tokens", name="a", role="monitor", campaigns="news")
    assert (bound.status_code, "monitor token is for all campaigns" in bound.text) == (422, True)


def test_a_form_that_is_refused_comes_back_filled_in(live: Live, admin: Visitor) -> None:
    """Else the role would be an analyst's again, unnoticed."""
    sent = {"name": "ios-app", "role": "app", "days": "90", "succeeds": "app"}
    refused = admin.send("/tokens", **sent, campaigns="")
    assert refused.status_code == 422
    assert 'value="app" required checked' in refused.text
    for field, value in (("name", "ios-app"), ("days", "90"), ("succeeds", "app")):
        assert f'id="{field}" name="{field}" value="{value}"' in refused.text
    unknown = admin.send("/tokens", **sent | {"succeeds": "nobody"}, campaigns="*").text
    assert 'value="app" required checked' in unknown
    assert "ios-app" not in live.aggregator.access.roles()
