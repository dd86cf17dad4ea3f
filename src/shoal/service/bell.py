"""A bell that any thread can ring and any coroutine can wait for."""

from __future__ import annotations

import asyncio
import threading


class Bell:
    """Counts its rings; a waiter passes the count it has seen, so no ring is ever missed."""

    def __init__(self) -> None:
        self.rings = 0
        self.silent = False  # for good: nothing is worth waiting for any more
        self._lock = threading.Lock()
        self._waiters: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def ring(self) -> None:
        """Wake everyone who waits."""
        with self._lock:
            self.rings += 1
            waiters, self._waiters = self._waiters, set()
        for loop, event in waiters:
            loop.call_soon_threadsafe(event.set)

    def silence(self) -> None:
        """Wake everyone who waits, and let nobody wait again."""
        self.silent = True
        self.ring()

    async def wait(self, seen: int, *, seconds: float) -> None:
        """Return at the first ring after the ``seen``-th, or when the time is up."""
        waiter = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            if self.silent or self.rings != seen:
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
