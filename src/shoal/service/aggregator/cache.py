"""The one cache of the aggregator: what its store holds, kept in memory.

The rule: a write to the store goes through ``Cache.write`` of the value that it changes. The value
is dropped when the transaction ends in whatever way, because a commit may take effect and raise
all the same; after a commit the writer may put the new value in its place. A value that was being
loaded meanwhile is not kept. So a look-up waits for no writer, and one that begins after a write
never gets an older value.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from sqlalchemy import Connection

from shoal.service.store import Database

Key = TypeVar("Key")
Value = TypeVar("Value")

MIN_VALUES = 8  # that are kept whatever their size


class Cache(Generic[Key, Value]):
    """Values by key, which ``load`` reads from the store.

    Those not used for longest are dropped while the sizes of all exceed ``max_size``, if not 0.
    """

    def __init__(
        self,
        database: Database,
        load: Callable[[Connection, Key], Value],
        *,
        size_of: Callable[[Value], int] = lambda value: 0,
        max_size: int = 0,
    ) -> None:
        self._database = database
        self._load = load
        self._size_of = size_of
        self._max_size = max_size
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._version = 0  # grows with every change
        self._lock = threading.Lock()  # held for a moment only
        self._loading = threading.Lock()  # one load at a time: a large value is not read twice

    def __contains__(self, key: Key) -> bool:
        return key in self._values

    def find(self, key: Key) -> Value | None:
        """Return a value, None where it is not in memory."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def get(self, key: Key) -> Value:
        """Return a value, from the store where it is not in memory."""
        value = self.find(key)
        if value is not None:
            return value
        with self._loading:
            with self._lock:
                if key in self._values:
                    return self._values[key]
                version = self._version
            with self._database.read() as connection:
                value = self._load(connection, key)
            with self._lock:
                if self._version == version:
                    self._keep(key, value)
        return value

    @contextmanager
    def write(self, key: Key, *, keep: bool = False) -> Iterator[Connection]:
        """Open a transaction that changes a value in the store, and drop the value when it ends.

        With ``keep``, it is dropped after a failure only: after a commit, the caller puts the new
        value in its place, and no look-up has to load it.
        """
        committed = False
        try:
            with self._database.write() as connection:
                yield connection
            committed = True
        finally:
            if not (keep and committed):
                self.drop(key)

    def put(self, key: Key, value: Value) -> None:
        """Replace a value by what is stored now."""
        with self._lock:
            self._version += 1
            self._keep(key, value)

    def drop(self, key: Key) -> None:
        """Forget a value that may differ from what is stored."""
        with self._lock:
            self._version += 1
            self._values.pop(key, None)

    def drop_all(self, is_stale: Callable[[Key], bool]) -> None:
        """Forget all values with such keys."""
        for key in filter(is_stale, list(self._values)):
            self.drop(key)

    def _keep(self, key: Key, value: Value) -> None:
        self._values[key] = value
        if not self._max_size:
            return
        size = sum(map(self._size_of, self._values.values()))
        while len(self._values) > MIN_VALUES and size > self._max_size:
            size -= self._size_of(self._values.popitem(last=False)[1])
