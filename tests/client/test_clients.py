from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from sqlalchemy import func, select
from tests.support.live import learning, serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal.client import AsyncClient, Client, ServiceError
from shoal.client.calls import encode
from shoal.errors import InvalidInputError
from shoal.service.store.aggregator import reports
from shoal.wire import Report

DEFINITION: dict[str, Any] = {
    "arms": ["red", "green", "blue"], "min_group_size": 4, "seats": 40, "horizon": 400,
    "policy": "explore-then-commit", "options": {"exploration": 0.1},
}  # fmt: skip


async def _async_round(url: str, tokens: dict[str, str]) -> tuple[dict[str, str], int]:
    async with (
        AsyncClient(url, tokens["operator"]) as operator,
        AsyncClient(url, tokens["app"]) as app,
    ):
        await operator.create_campaign("news", **DEFINITION)
        await operator.enrol("news", users(40))
        await operator.open_round("news", 1)
        arms = await app.assignments("news")
        refused = await app.report("news", 1, dict.fromkeys(users(41), 0.5), batch_size=7)
        await operator.close_round("news", 1)
        return arms, len(refused)


def test_the_asynchronous_client_does_the_same(tmp_path: Path) -> None:
    stores = Stores(f"sqlite:///{tmp_path}/aggregator.db", f"sqlite:///{tmp_path}/learner.db")
    with serve(stores) as live, learning(live):
        arms, refused = asyncio.run(_async_round(live.url, live.tokens))
        assert (len(arms), refused) == (40, 1)


@pytest.mark.parametrize("wrong", [("user-20", True), ("user-20", float("nan")), (20, 0.5)])
def test_a_report_of_a_wrong_type_is_named_before_any_is_sent(
    tmp_path: Path, wrong: tuple[Any, Any]
) -> None:
    stores = Stores(f"sqlite:///{tmp_path}/aggregator.db", f"sqlite:///{tmp_path}/learner.db")
    with serve(stores) as live:
        live.client("operator").create_campaign("news", **DEFINITION)
        live.client("operator").enrol("news", users(40))
        live.client("operator").open_round("news", 1, wait=0)
        live.work()
        rewards = [(user, 0.5) for user in users(20)] + [wrong]
        with pytest.raises(InvalidInputError, match=r"has index 20\. Nothing was sent\."):
            live.client("app").report("news", 1, rewards, batch_size=7)
        with live.aggregator.database.read() as connection:
            assert connection.scalar(select(func.count()).select_from(reports)) == 0


def test_both_clients_have_the_same_methods_with_the_same_signatures() -> None:
    def methods(client: type) -> dict[str, inspect.Signature]:
        functions = inspect.getmembers(client, inspect.isfunction)
        return {name: inspect.signature(m) for name, m in functions if not name.startswith("_")}

    assert methods(Client) == methods(AsyncClient)
    assert {"campaign", "close", "enrol", "report", "run", "token"} <= methods(Client).keys()


def test_a_client_gives_up_in_time_and_says_so() -> None:
    with Client("http://127.0.0.1:9", "token", patience=0.3) as client:
        with pytest.raises(
            ServiceError, match=r"no service answers at http://127.0.0.1:9: ConnectError"
        ) as caught:
            client.campaigns()
        assert caught.value.name == "unreachable"


@pytest.mark.parametrize("client", [Client, AsyncClient])
@pytest.mark.parametrize("url", ["127.0.0.1:8000", "localhost:8000", "ftp://x", "http://", ""])
def test_an_address_that_nothing_can_be_sent_to_is_refused_at_once(
    client: type[Client | AsyncClient], url: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"http:// or https://; got '{url}'"):
        client(url, "token")


def answering(client: Client, answer: Callable[[httpx.Request], httpx.Response]) -> None:
    client._http = httpx.Client(base_url="http://shoal", transport=httpx.MockTransport(answer))


def test_a_client_tries_again_where_the_service_may_answer_later() -> None:
    answers = iter([503, 429, 200])
    with Client("http://shoal", "token", patience=5.0) as client:
        answering(client, lambda _: httpx.Response(next(answers), json={"campaigns": ["news"]}))
        assert client.campaigns() == ["news"]


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"<html>", "", "HTTP 404"),
        (b'{"detail": ["x"]}', "", "HTTP 404"),
        (b'{"type": "urn:shoal:problem:unknown-round", "title": "No.", "status": 404}',
         "unknown-round", "No."),
        (b'{"type": "urn:shoal:problem:invalid-input", "title": "No.", "detail": "x: 1"}',
         "invalid-input", "No. x: 1"),
        (b'{"type": "urn:shoal:problem:not-found", "title": "No."}',
         "not-found", "No. Got GET /v1/campaigns."),
    ],
)  # fmt: skip
def test_a_refusal_is_raised_with_its_name(content: bytes, name: str, message: str) -> None:
    with Client("http://shoal", "token") as client:
        answering(client, lambda _: httpx.Response(404, content=content))
        with pytest.raises(ServiceError) as caught:
            client.campaigns()
    assert (caught.value.name, caught.value.status, str(caught.value)) == (name, 404, message)


@pytest.mark.parametrize("given", ["ann", {"ann"}, {"ann": 1}.keys(), np.array(["ann"])])
def test_users_that_are_no_list_are_refused_before_they_are_sent(given: Any) -> None:
    with Client("http://127.0.0.1:9", "token", patience=0) as client:
        for call in (client.enrol, client.withdraw):
            with pytest.raises(InvalidInputError, match="users must be a list of texts; got "):
                call("news", given)


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_leads_to_another_address_is_refused_before_it_is_sent(
    tmp_path: Path, name: str
) -> None:
    """To retire the arm ".." had deleted its campaign."""
    stores = Stores(f"sqlite:///{tmp_path}/aggregator.db", f"sqlite:///{tmp_path}/learner.db")
    with serve(stores) as live:
        operator = live.client("operator")
        operator.create_campaign("news", **DEFINITION)
        for call in (
            lambda: operator.retire_arm("news", name),
            lambda: operator.campaign(name),
            lambda: live.client("app").assignment("news", name),
        ):
            with pytest.raises(InvalidInputError, match=r'a name must not be empty, "\." or'):
                call()
        assert operator.campaigns() == ["news"]


@pytest.mark.parametrize("reward", [np.float32(0.5), np.float64(0.5), 0.5])
def test_rewards_may_be_numbers_of_numpy(reward: float) -> None:
    assert encode(Report("ann", reward)) == b'{"user":"ann","reward":0.5}'


def test_what_can_not_be_sent_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="must be numbers, text and lists; got object"):
        encode({"arms": object()})


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize("waits", [True, False], ids=["Client", "AsyncClient"])
def test_withdraw_counts_who_left_or_whose_name_was_erased(waits: bool, erase: bool) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"joined": 0, "left": 2, "erased": 3})

    transport = httpx.MockTransport(answer)
    if waits:
        client = Client("http://shoal", "token")
        client._http = httpx.Client(base_url="http://shoal", transport=transport)
        n_users = client.withdraw("news", ["ann"], erase=erase)
    else:
        awaited = AsyncClient("http://shoal", "token")
        awaited._http = httpx.AsyncClient(base_url="http://shoal", transport=transport)
        n_users = asyncio.run(awaited.withdraw("news", ["ann"], erase=erase))
    assert n_users == (3 if erase else 2)


@pytest.mark.parametrize("client", [Client, AsyncClient])
@pytest.mark.parametrize(
    ("token", "place"), [("secret\n", 7), ("sécret", 2), ("secret x", 7), (" secret", 1)]
)
def test_a_token_that_no_header_can_hold_is_refused_at_once_and_not_shown(
    client: type[Client | AsyncClient], token: str, place: int
) -> None:
    with pytest.raises(InvalidInputError, match=r"^token must be printable ASCII") as caught:
        client("http://shoal", token)
    assert f"character {place} of {len(token)} is not." in str(caught.value)
    assert token.strip() not in str(caught.value)
