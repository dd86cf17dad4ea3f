"""Prometheus metrics: of routes, refusals and releases; never of a user, a reward or a report.

Nothing here moves when a report comes in: a counter that does shows a reporter. What is counted of
reports is held back until their campaign releases a round, and what is counted of a release until
the learner has it on record: no old backup can then open its round again.
"""

import collections
import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from shoal.service.problems import UNKNOWN_CAMPAIGN, ProblemError
from shoal.wire import StoredRelease

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


class Metrics:
    """The metrics of one process.

    ``shown`` returns the last round that people may see, or None; ``last_contact_at`` when the
    learner was last in touch, and ``n_ahead`` in how many campaigns it knows of later rounds.
    """

    def __init__(
        self,
        shown: Callable[[str], int | None],
        *,
        last_contact_at: Callable[[], int] = lambda: 0,
        n_ahead: Callable[[], int] = lambda: 0,
    ) -> None:
        self._shown = shown
        self._reports_of = collections.defaultdict[str, PendingReports](PendingReports)
        # Releases that the learner has not on record, each with the reports before it.
        self._releases: list[tuple[StoredRelease, PendingReports]] = []
        self._lock = threading.Lock()
        self._registry = registry = CollectorRegistry()
        self._requests = Histogram(
            "shoal_request_seconds",
            "Time to answer, by route.",
            ["method", "route", "status"],
            registry=registry,
        )
        counter = partial(Counter, registry=registry)
        self._reports = counter(
            "shoal_report_requests", "Requests with reports, up to the release."
        )
        self._report_seconds = counter("shoal_report_seconds", "Time to answer them, in all.")
        self._refused = counter("shoal_refused_reports", "Reports refused, by reason.", ["reason"])
        last_contact = Gauge(
            "shoal_learner_heard_timestamp_seconds",
            "When the learner was last in touch, 0 before that.",
            registry=registry,
        )
        last_contact.set_function(lambda: last_contact_at() / 1000)
        self._rounds = counter("shoal_released_rounds", "Rounds released.")
        self._totals = counter("shoal_released_totals", "Totals released.")
        self._merged = counter("shoal_merged_totals", "Released totals of merged groups.")
        self._withheld = counter("shoal_withheld_groups", "Groups withheld.")
        self._homogeneous = counter("shoal_homogeneous_totals", "Totals of all 0 or all 1.")
        self._contested = counter("shoal_contested_reports", "Reports by a second source.")
        self._abandoned = counter("shoal_abandoned_rounds", "Rounds that operators abandoned.")
        ahead = Gauge(
            "shoal_learner_ahead", "Campaigns that wait for an operator.", registry=registry
        )
        ahead.set_function(n_ahead)

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

    def add_release(self, document: StoredRelease) -> None:
        """Count a release and the reports before it, once the release may be shown."""
        with self._lock:
            reports = self._reports_of.pop(document.campaign, PendingReports())
            self._releases.append((document, reports))
        self._count_shown()

    def add_abandoned(self, n_rounds: int) -> None:
        """Count rounds that were abandoned."""
        self._abandoned.inc(n_rounds)

    def _count_shown(self) -> None:
        campaigns = {document.campaign for document, _ in list(self._releases)}
        last = {name: self._last_shown(name) for name in campaigns}  # may ask the store

        def shown(document: StoredRelease) -> bool:
            return document.round <= last.get(document.campaign, 0)

        with self._lock:
            counted = [release for release in self._releases if shown(release[0])]
            self._releases = [release for release in self._releases if not shown(release[0])]
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
            self._contested.inc(document.contested)

    def _last_shown(self, name: str) -> float:
        """Return the last round that may be counted: any of a campaign that was deleted since.

        It was archived before, and the learner then had all of its releases on record.
        """
        try:
            return self._shown(name) or 0
        except ProblemError as error:
            if error.reason != UNKNOWN_CAMPAIGN:
                raise
            return math.inf

    def text(self) -> bytes:
        """Return everything in Prometheus's format."""
        self._count_shown()
        return generate_latest(self._registry)
