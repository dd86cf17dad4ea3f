"""A chart as a CSV file: all of its points, of which the page's table has twelve.

It has what the chart shows and nothing else: released totals, so that at least C users are behind
every reward, and what users were assigned. A PNG is drawn by the browser, from the chart itself.
"""

import csv
import io
from datetime import UTC, datetime

from fastapi import APIRouter, Response

from shoal.service.dashboard.auth import ReaderPage
from shoal.service.dashboard.progress import Column, View, campaign_view
from shoal.service.dashboard.rendering import HEADERS, PageRoute
from shoal.service.problems import NOT_FOUND, ProblemError
from shoal.service.web.access import Name

router = APIRouter(
    prefix="/campaigns/{name}/charts", route_class=PageRoute, include_in_schema=False
)

CHART_COLUMNS = {
    "reward": ("reward", "holdout", "best"),
    "shares": (),  # one for each arm
    "sizes": ("total", "typical", "group", "crowd"),
    "groups": ("whole", "merged", "withheld", "homogeneous"),
}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@router.get("/{chart}.csv")
def read_csv(name: Name, chart: str, page: ReaderPage) -> Response:
    """Read a chart's data."""
    if chart not in (*CHART_COLUMNS, "estimates"):
        raise ProblemError(NOT_FOUND)
    text = io.StringIO()
    csv.writer(text).writerows(_rows(campaign_view(page.aggregator, name), chart))
    headers = HEADERS | {"Content-Disposition": f'attachment; filename="{name}-{chart}.csv"'}
    return Response(text.getvalue(), headers=headers, media_type="text/csv; charset=utf-8")


def _rows(view: View, chart: str) -> list[list[object]]:
    if chart == "estimates":
        estimates = view.estimates
        columns: list[Column] = [
            estimates.mean, estimates.low, estimates.high, estimates.best, estimates.spread
        ]  # fmt: skip
        head = ["arm", "mean", "low", "high", "best_for_share_of_users", "spread"]
        return [
            head,
            *([_text(arm), *row] for arm, *row in zip(estimates.arm, *columns, strict=True)),
        ]
    points = view.points
    if chart == "shares":
        names, columns = [_text(arm) for arm in view.arms], points.shares
    else:
        names, columns = (
            list(CHART_COLUMNS[chart]),
            [getattr(points, key) for key in CHART_COLUMNS[chart]],
        )
    times = map(_time, points.time)
    rows = zip(points.round, times, *columns, strict=True)
    return [["round", "released_at", *names], *(list(row) for row in rows)]


def _text(value: str) -> str:
    """Return a name that no spreadsheet takes for a formula."""
    return f"'{value}" if value.startswith(_FORMULA) else value


def _time(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
