"""Whether the service can do its work: one check at a time, and nobody waits long for it.

A store that is locked or away keeps whoever asks it waiting. So all requests share the check that
is under way, and one that takes too long counts as failed.
"""

import asyncio

from starlette.concurrency import run_in_threadpool

from shoal.service.aggregator import Aggregator
from shoal.wire import Readiness

MAX_CHECK_SECONDS = 2.0  # that a check may take
MAX_SILENCE = 90_000  # milliseconds; the learner is in touch at least once a minute


class ReadinessCheck:
    """Checks the store, the schedules and the learner; only the event loop uses it."""

    def __init__(self, aggregator: Aggregator) -> None:
        self._aggregator = aggregator
        self._started_at = aggregator.clock()
        self._check: asyncio.Task[bool] | None = None

    async def read(self) -> Readiness:
        """Return what is well and what is not."""
        store = await self._store()
        schedules, learner = self._aggregator.on_schedule, self._hears_learner()
        return Readiness(
            ok=store and schedules and learner, store=store, schedules=schedules, learner=learner
        )

    async def _store(self) -> bool:
        if self._check is None or self._check.done():
            self._check = asyncio.create_task(run_in_threadpool(self._aggregator.database.writable))
        check = self._check
        await asyncio.wait([check], timeout=MAX_CHECK_SECONDS)
        return check.done() and not check.cancelled() and not check.exception() and check.result()

    def _hears_learner(self) -> bool:
        """Return whether the learner was in touch lately; a start leaves it some time."""
        last = max(self._aggregator.epochs.last_contact_at, self._started_at)
        return self._aggregator.clock() - last <= MAX_SILENCE
