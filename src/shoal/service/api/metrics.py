"""Prometheus metrics: of routes, refusals and releases; never of a user, a reward or a report.

Nothing here counts reports as they come in: a counter that moves by one shows a reporter
(threat 21).
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from shoal.service.aggregator.release import Document

MEDIA_TYPE = CONTENT_TYPE_LATEST


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

    def saw(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request by its route's template."""
        self._requests.labels(method, route, status).observe(seconds)

    def refused(self, reasons: Iterable[str]) -> None:
        """Count refused reports."""
        for reason in reasons:
            self._refused.labels(reason).inc()

    def released(self, document: Document) -> None:
        """Count a release."""
        self._rounds.inc()
        self._totals.inc(len(document.totals))
        self._merged.inc(sum(len(total.parts) > 1 for total in document.totals))
        self._withheld.inc(document.withheld)
        self._homogeneous.inc(document.homogeneous)

    def text(self) -> bytes:
        """Return everything in Prometheus's format."""
        return generate_latest(self._registry)
