"""What the learner says while it works."""

from __future__ import annotations

import logging
import threading

import pytest
from tests.support.live import serve
from tests.support.stores import Stores

from shoal.client import Client
from shoal.kernels import announce_compilation
from shoal.service.learner.service import Learner


def test_a_wrong_token_is_named_and_the_warning_is_not_repeated(
    sqlite_stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    with serve(sqlite_stores) as live, Client(live.url, live.tokens["app"], patience=0.1) as client:
        learner, stopped = Learner(live.learner.database, client), threading.Event()
        timer = threading.Timer(1.5, stopped.set)
        timer.start()
        learner.work_until(stopped, wait=0.0)
        timer.join()
    lines = [record.getMessage() for record in caplog.records if "tries again" in record.message]
    assert lines == [
        "the learner tries again: wrong-role; SHOAL_LEARNER_TOKEN must be a learner's token of "
        "this aggregator"
    ]


def test_that_functions_are_compiled_is_said_once(
    sqlite_stores: Stores, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = threading.Event()

    def compile_twice(*, wait: float) -> int:
        for step in ("plan", "plan", "release", "release"):
            live.learner._step = step
            announce_compilation()
        stopped.set()
        return 0

    with caplog.at_level(logging.INFO, logger="shoal.service"), serve(sqlite_stores) as live:
        monkeypatch.setattr(live.learner, "work", compile_twice)
        live.learner.work_until(stopped)
    for step in ("plan", "release"):
        assert caplog.text.count(f"compiling, once: the first {step} on a machine") == 1
