"""Wakes coroutines when another thread has changed something that they wait for."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

T = TypeVar("T")


class Notifier:
    """Counts notifications; a waiter passes the version it has read, so that none is missed."""

    def __init__(self) -> None:
        self.version = 0
        self.closed = False
        self._lock = threading.Lock()
        self._waiters: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def notify(self) -> None:
        """Wake all waiters."""
        with self._lock:
            self.version += 1
            waiters, self._waiters = self._waiters, set()
        for loop, event in waiters:
            loop.call_soon_threadsafe(event.set)

    def close(self) -> None:
        """Wake all waiters; from now on ``wait`` returns at once."""
        self.closed = True
        self.notify()

    async def _wait(self, version: int, seconds: float) -> None:
        """Return as soon as the version differs from ``version``, or when the time is up."""
        waiter = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            if self.closed or self.version != version:
                return
            self._waiters.add(waiter)
        try:
            async with asyncio.timeout(seconds):
                await waiter[1].wait()
        except TimeoutError:
            pass
        finally:
            with self._lock:
                self._waiters.discard(waiter)

    async def poll(self, read: Callable[[], T], *, until: Callable[[T], bool], seconds: float) -> T:
        """Return what is read; read it again with every notification, ``until`` it will do."""
        ends = time.monotonic() + seconds
        while True:
            version = self.version
            value = await run_in_threadpool(read)
            left = ends - time.monotonic()
            if until(value) or left <= 0 or self.closed:
                return value
            await self._wait(version, left)
