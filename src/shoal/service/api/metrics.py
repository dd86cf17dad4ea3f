"""Prometheus metrics: of routes, refusals and releases; never of a user, a reward or a report.

Nothing here moves when a report comes in: a counter that does shows a reporter (threat 21). What is
counted of reports is held back until their campaign releases a round.
"""

from __future__ import annotations

import threading
from collections import Counter as Counts
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from shoal.service.aggregator.release import Document

MEDIA_TYPE = CONTENT_TYPE_LATEST


def takes_reports(route: str, status: int) -> bool:
    """Return whether a request may have brought reports to be counted."""
    return route.endswith("/reports") and status < 300


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
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
        self._held: dict[str, tuple[int, float]] = {}  # requests and seconds, by campaign
        self._held_reasons: Counts[str] = Counts()
        self._lock = threading.Lock()
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
                count, spent = self._held.get(campaign, (0, 0.0))
                self._held[campaign] = count + 1, spent + seconds
        else:
            self._requests.labels(method, route, status).observe(seconds)

    def refused(self, reasons: Iterable[str]) -> None:
        """Count refused reports, with the next release."""
        with self._lock:
            self._held_reasons.update(reasons)

    def released(self, document: Document) -> None:
        """Count a release, and what was held back until now."""
        with self._lock:
            count, seconds = self._held.pop(document.campaign, (0, 0.0))
            reasons, self._held_reasons = self._held_reasons, Counts()
        self._reports.inc(count)
        self._report_seconds.inc(seconds)
        for reason, n in reasons.items():
            self._refused.labels(reason).inc(n)
        self._rounds.inc()
        self._totals.inc(len(document.totals))
        self._merged.inc(sum(len(total.parts) > 1 for total in document.totals))
        self._withheld.inc(document.withheld)
        self._homogeneous.inc(document.homogeneous)

    def text(self) -> bytes:
        """Return everything in Prometheus's format."""
        return generate_latest(self._registry)
