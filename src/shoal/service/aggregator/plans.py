"""Frozen plans in memory: those last used, so that a look-up does not ask the store."""

from __future__ import annotations

import threading
from collections import OrderedDict

from shoal.service.aggregator.rounds import FrozenPlan

FEWEST = 8  # plans that are kept in any case, and as many more as have together
MOST_SEATS = 2**24

Found = tuple[int, FrozenPlan]  # a round's row, and its plan


class Plans:
    """The plans of the rounds that were last looked at."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int], Found] = OrderedDict()
        self._lock = threading.Lock()  # never held while the store is asked

    def keep(self, name: str, number: int, found: Found) -> None:
        """Keep a plan, in place of those that were not used for longest."""
        with self._lock:
            self._kept[name, number] = found
            seats = sum(plan.arms.size for _, plan in self._kept.values())
            while len(self._kept) > FEWEST and seats > MOST_SEATS:
                _, (_, plan) = self._kept.popitem(last=False)
                seats -= plan.arms.size

    def find(self, name: str, number: int) -> Found | None:
        """Return a plan if it is kept."""
        with self._lock:
            found = self._kept.get((name, number))
            if found is not None:
                self._kept.move_to_end((name, number))
            return found
