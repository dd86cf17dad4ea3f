"""Prometheus metrics: of routes, refusals and releases; never of a user, a reward or a report.

Nothing here moves when a report comes in: a counter that does shows a reporter (threat 21). What is
counted of reports is held back until their campaign releases a round, and what is counted of a
release until the learner has it on record (threat 17).
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from shoal.service.aggregator.release import Document

METRICS_TYPE = CONTENT_TYPE_LATEST


def takes_reports(route: str, status: int) -> bool:
    """Return whether a request may have brought reports to be counted."""
    return route.endswith("/reports") and status < 300


@dataclass
class PendingReports:
    """Requests with reports to a campaign since its last release."""

    requests: int = 0
    seconds: float = 0.0
    refusals: collections.Counter[str] = field(default_factory=collections.Counter)


class PendingRelease(NamedTuple):
    """A release, and the reports before it, that are not counted yet."""

    document: Document
    reports: PendingReports


class Metrics:
    """The metrics of one process.

    Parameters
    ----------
    shown
        Returns the last round of a campaign that people may see, None for none.
    """

    def __init__(self, shown: Callable[[str], int | None]) -> None:
        self._shown = shown
        self._reports_of = collections.defaultdict[str, PendingReports](PendingReports)
        self._releases: list[PendingRelease] = []  # that the learner has not on record
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

    def add_request(
        self, method: str, route: str, status: int, seconds: float, *, campaign: str = ""
    ) -> None:
        """Count a request by its route's template; one that brought reports, later."""
        if takes_reports(route, status):
            with self._lock:
                reports = self._reports_of[campaign]
                reports.requests += 1
                reports.seconds += seconds
        else:
            self._requests.labels(method, route, status).observe(seconds)

    def add_refusals(self, campaign: str, reasons: Iterable[str]) -> None:
        """Count refused reports, with their campaign's next release."""
        with self._lock:
            self._reports_of[campaign].refusals.update(reasons)

    def add_release(self, document: Document) -> None:
        """Count a release and the reports before it, once the release may be shown."""
        with self._lock:
            reports = self._reports_of.pop(document.campaign, PendingReports())
            self._releases.append(PendingRelease(document, reports))
        self._count_shown()

    def _count_shown(self) -> None:
        campaigns = {release.document.campaign for release in list(self._releases)}
        last = {name: self._shown(name) or 0 for name in campaigns}  # may ask the store

        def shown(release: PendingRelease) -> bool:
            return release.document.round <= last.get(release.document.campaign, 0)

        with self._lock:
            counted = [release for release in self._releases if shown(release)]
            self._releases = [release for release in self._releases if not shown(release)]
        for document, reports in counted:
            self._reports.inc(reports.requests)
            self._report_seconds.inc(reports.seconds)
            for reason, count in reports.refusals.items():
                self._refused.labels(reason).inc(count)
            self._rounds.inc()
            self._totals.inc(len(document.totals))
            self._merged.inc(sum(len(total.parts) > 1 for total in document.totals))
            self._withheld.inc(document.withheld)
            self._homogeneous.inc(document.homogeneous)

    def text(self) -> bytes:
        """Return everything in Prometheus's format."""
        self._count_shown()
        return generate_latest(self._registry)
