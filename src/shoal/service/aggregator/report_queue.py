"""One writer for all reports: batches that wait together are committed together.

A batch is answered after the commit that holds it. Individual rewards live in a batch, in memory,
until then, and nowhere else.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from shoal.arrays import IntArray, LongArray

MOST_TOGETHER = 64


@dataclass(eq=False, repr=False, slots=True)
class Batch:
    """Valid reports for one round; the future gets the seats whose reports come too late."""

    round_id: int
    groups: IntArray
    seats: LongArray
    steps: LongArray
    late: Future[LongArray] = field(default_factory=Future)


class ReportQueue:
    """A thread that hands waiting batches to ``commit``, many at a time."""

    def __init__(self, commit: Callable[[list[Batch]], list[LongArray]]) -> None:
        self._commit = commit
        self._waiting: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="report-queue", daemon=True)
        self._thread.start()

    def submit(self, batch: Batch) -> Future[LongArray]:
        """Queue a batch; the future is done when it is durable."""
        self._waiting.put(batch)
        return batch.late

    def close(self) -> None:
        """Finish what is waiting, then stop."""
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        going = True
        while going:
            batches: list[Batch] = []
            found = self._waiting.get()
            while found is not None:
                batches.append(found)
                if len(batches) == MOST_TOGETHER:
                    break
                try:
                    found = self._waiting.get_nowait()
                except queue.Empty:
                    break
            going = found is not None
            if batches:
                self._settle(batches)

    def _settle(self, batches: list[Batch]) -> None:
        try:
            verdicts = self._commit(batches)
        except Exception as error:  # each sender hears of it and may repeat
            for batch in batches:
                batch.late.set_exception(error)
            return
        for batch, late in zip(batches, verdicts, strict=True):
            batch.late.set_result(late)
