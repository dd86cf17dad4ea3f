"""The service keeps to its own OpenAPI document, whatever is thrown at it.

One check is left out: that all input which fits the schema is accepted. A campaign has rules
across its fields, which no JSON schema can state.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from tests.support.live import Live, serve
from tests.support.service import users
from tests.support.stores import Stores

OPERATIONS = 31


def role_for(path: str, method: str) -> str:
    if "/assignments" in path or path.endswith("/reports"):
        return "app"
    if "/learner/" in path or path.endswith("/eligible"):
        return "learner"
    return "analyst" if path.endswith("/release") else "operator"


def prepare(live: Live) -> None:
    operator = live.client("operator")
    operator.create_campaign("0", arms=["a", "b"], min_group_size=2, seats=8, horizon=99)
    operator.enrol("0", users(8))
    operator.open_round("0", 1, wait=0)
    live.work()


def at_once(sent: dict[str, Any]) -> dict[str, Any]:
    """Take the waiting out of a valid request: no learner is there to wait for."""
    wait = sent.get("wait", 0)
    valid = isinstance(wait, int | float) and 0 <= wait <= 60
    return {**sent, "wait": 0} if valid else sent


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_operation_answers_as_documented(sqlite_stores: Stores) -> None:
    import schemathesis  # here: every worker collects this file, and one runs it
    from schemathesis import GenerationMode
    from schemathesis.core.result import Ok
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    with serve(sqlite_stores) as live:
        prepare(live)
        schema = schemathesis.openapi.from_url(f"{live.url}/openapi.json")
        tried = 0
        for result in schema.get_all_operations():
            assert isinstance(result, Ok)
            operation = result.ok()
            headers = {
                "Authorization": f"Bearer {live.tokens[role_for(operation.path, operation.method)]}"
            }
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                cases = operation.as_strategy(generation_mode=mode)

                @given(case=cases, sent=st.just(headers))
                @settings(
                    max_examples=6,
                    deadline=None,
                    derandomize=True,
                    database=None,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                )
                def check(case: Any, sent: dict[str, str]) -> None:
                    if case.operation.path.endswith("/rounds/{number}"):
                        case.query = at_once(case.query or {})
                    waits = case.operation.path.endswith("/work")
                    if waits and isinstance(case.body, dict):
                        case.body = at_once(case.body)
                    answer = case.call(headers=sent)
                    # The token that was sent is valid: what is wrong with a request is elsewhere.
                    case.headers = {**(case.headers or {}), **sent}
                    if answer.status_code == 503:  # the fuzzed learner may contradict itself
                        assert answer.json()["type"] == "urn:shoal:problem:learner-silent"
                        return
                    case.validate_response(answer, excluded_checks=[positive_data_acceptance])

                # Some operations leave nothing to get wrong.
                with suppress(Unsatisfiable) if mode is GenerationMode.NEGATIVE else nullcontext():
                    check()
            tried += 1
        assert tried == OPERATIONS
