"""Prometheus metrics: of routes, refusals and releases; never of a user, a reward or a report.

Nothing here moves when a report comes in: a counter that does shows a reporter (threat 21). What is
counted of reports is held back until their campaign releases a round, and what is counted of a
release until the learner has it on record (threat 17).
"""

from __future__ import annotations

import threading
from collections import Counter as Counts
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from shoal.service.aggregator.release import Document

MEDIA_TYPE = CONTENT_TYPE_LATEST


def takes_reports(route: str, status: int) -> bool:
    """Return whether a request may have brought reports to be counted."""
    return route.endswith("/reports") and status < 300


@dataclass
class Held:
    """What reports to a campaign have cost since its last release."""

    requests: int = 0
    seconds: float = 0.0
    reasons: Counts[str] = field(default_factory=Counts)


class Told(NamedTuple):
    """What there is to count of a release."""

    campaign: str
    round: int
    totals: int
    merged: int
    withheld: int
    homogeneous: int
    held: Held


class Metrics:
    """The metrics of one process.

    Parameters
    ----------
    shown
        Returns the last round of a campaign that people may see, None for none.
    """

    def __init__(self, shown: Callable[[str], int | None]) -> None:
        self._shown = shown
        self._held: dict[str, Held] = {}  # by campaign
        self._waiting: list[Told] = []  # releases that the learner has not on record
        self._lock = threading.Lock()
        self._registry = registry = CollectorRegistry()
        self._requests = Histogram(
            "shoal_request_seconds",
            "Time to answer, by route.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._reports = Counter(
            "shoal_report_requests", "Requests with reports, up to the release.", registry=registry
        )
        self._report_seconds = Counter(
            "shoal_report_seconds", "Time to answer them, in all.", registry=registry
        )
        self._refused = Counter(
            "shoal_refused_reports", "Reports refused, by reason.", ["reason"], registry=registry
        )
        self._rounds = Counter("shoal_released_rounds", "Rounds released.", registry=registry)
        self._totals = Counter("shoal_released_totals", "Totals released.", registry=registry)
        self._merged = Counter(
            "shoal_merged_totals", "Released totals of merged groups.", registry=registry
        )
        self._withheld = Counter("shoal_withheld_groups", "Groups withheld.", registry=registry)
        self._homogeneous = Counter(
            "shoal_homogeneous_totals", "Totals of all 0 or all 1.", registry=registry
        )

    def saw(
        self, method: str, route: str, status: int, seconds: float, *, campaign: str = ""
    ) -> None:
        """Count a request by its route's template; one that brought reports, later."""
        if takes_reports(route, status):
            with self._lock:
                held = self._held.setdefault(campaign, Held())
                held.requests += 1
                held.seconds += seconds
        else:
            self._requests.labels(method, route, status).observe(seconds)

    def refused(self, campaign: str, reasons: Iterable[str]) -> None:
        """Count refused reports, with their campaign's next release."""
        with self._lock:
            self._held.setdefault(campaign, Held()).reasons.update(reasons)

    def released(self, document: Document) -> None:
        """Count a release once people may see it, and with it what was held back until now."""
        with self._lock:
            told = Told(
                document.campaign,
                document.round,
                len(document.totals),
                sum(len(total.parts) > 1 for total in document.totals),
                document.withheld,
                document.homogeneous,
                self._held.pop(document.campaign, Held()),
            )
            self._waiting.append(told)
        self._settle()

    def _settle(self) -> None:
        waiting = {told.campaign for told in list(self._waiting)}
        shown = {name: self._shown(name) or 0 for name in waiting}  # may ask the store
        with self._lock:
            seen = [told for told in self._waiting if told.round <= shown.get(told.campaign, 0)]
            self._waiting = [told for told in self._waiting if told not in seen]
        for told in seen:
            self._reports.inc(told.held.requests)
            self._report_seconds.inc(told.held.seconds)
            for reason, count in told.held.reasons.items():
                self._refused.labels(reason).inc(count)
            self._rounds.inc()
            self._totals.inc(told.totals)
            self._merged.inc(told.merged)
            self._withheld.inc(told.withheld)
            self._homogeneous.inc(told.homogeneous)

    def text(self) -> bytes:
        """Return everything in Prometheus's format."""
        self._settle()
        return generate_latest(self._registry)
