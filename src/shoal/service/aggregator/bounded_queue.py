"""A queue that refuses what it has no room for, so that a slow store can't fill the memory."""

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from shoal.service.problems import BUSY, ProblemError

Item = TypeVar("Item")


class BoundedQueue(Generic[Item]):
    """Items of at most ``max_size`` in all, by ``size_of``; None marks the end and has no size.

    An item that is larger than all room has a place in an empty queue.
    """

    def __init__(self, size_of: Callable[[Item], int], *, max_size: int) -> None:
        self._size_of = size_of
        self._max_size = max_size
        self._size = 0
        self._lock = threading.Lock()
        self._items: queue.SimpleQueue[Item | None] = queue.SimpleQueue()

    def put(self, item: Item | None) -> None:
        """Add an item, or refuse it."""
        size = 0 if item is None else self._size_of(item)
        with self._lock:
            if size and self._size and self._size + size > self._max_size:
                raise ProblemError(BUSY)
            self._size += size
            self._items.put(item)

    def get(self, *, block: bool = True) -> Item | None:
        """Remove the item that has waited longest; without ``block``, raise queue.Empty."""
        item = self._items.get(block)
        if item is not None:
            with self._lock:
                self._size -= self._size_of(item)
        return item
