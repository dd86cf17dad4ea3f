"""The charts, declared with Altair; each names its data, which the page adds and updates.

Colours are in ``THEMES`` alone: a chart says what differs, the theme says how it looks.
"""

from copy import deepcopy
from functools import lru_cache
from typing import Any

import altair as alt

from shoal.palette import DARK, LIGHT, Palette

HEIGHT = 240
HOMOGENEOUS = "homogeneous totals"

LINES = {
    "reward": {"reward": "reward", "best": "best single arm so far", "first": "first rounds"},
    "sizes": {
        "crowd": "smallest crowd",
        "total": "smallest total, reporters",
        "group": "smallest group, by plan",
        "least": "the line at C",
    },
    "groups": {
        "whole": "whole", "merged": "merged", "withheld": "withheld", "homogeneous": HOMOGENEOUS,
    },
}  # fmt: skip
"""For each chart of lines, the columns of the data and their labels; the first is on top.

``first`` and ``least`` have one value for all rounds.
"""
ARM_DASHES = {
    "reward": [[1, 0], [7, 3], [2, 3]],
    "sizes": [[1, 0], [2, 4], [8, 4], [1, 0]],  # lines that lie on each other can all be seen
}

Spec = dict[str, Any]

_tip = alt.Tooltip

_ROUND = (
    alt.X("round:Q", title="round")
    .axis(grid=False, format="d", labelExpr="datum.value % 1 ? '' : datum.label")
    .scale(zero=False, nice=False)
)
_LOG = alt.Axis(values=[m * 10**e for e in range(8) for m in (1, 2, 5)], format="~s")
# A long name keeps both ends: names often begin alike.
_SHORT_LABEL = (
    "length(datum.label) > 21 "
    "? slice(datum.label, 0, 11) + '…' + slice(datum.label, -9) : datum.label"
)
_BELOW: Spec = {"orient": "bottom", "direction": "horizontal", "title": None}
_LEGEND = alt.Legend(**_BELOW)


def specs(*, least: int = 1, noise: bool = False) -> dict[str, Spec]:
    """Return a campaign's charts as Vega-Lite, by name; each chart's data has the chart's name.

    ``least`` is C: sizes are shown around it, wide enough for a few ticks. With noise nobody knows
    which totals are homogeneous.
    """
    by_name = deepcopy(_specs())
    by_name["sizes"]["layer"][1]["data"]["values"] = [{"value": least / 4}, {"value": least * 4}]
    if noise:
        by_name["groups"]["layer"].pop()
    return by_name


@lru_cache(maxsize=1)
def _specs() -> dict[str, Spec]:
    charts: dict[str, alt.Chart | alt.LayerChart] = {
        "reward": _lines("reward", alt.Y("value:Q", title="mean reward").scale(zero=False), ".3f"),
        "shares": _shares(),
        "sizes": _sizes(),
        "groups": _groups(),
        "estimates": _estimates(),
    }
    by_name = {
        name: chart.properties(width="container", height=HEIGHT).to_dict()
        for name, chart in charts.items()
    }
    for spec in by_name.values():
        del spec["config"]  # the page's theme
    return by_name


def _lines(name: str, y: alt.Y, spec: str) -> alt.Chart:
    labels = list(LINES[name].values())
    dashes = alt.Scale(domain=labels, range=ARM_DASHES[name])
    chart: alt.Chart = alt.Chart(alt.NamedData(name)).mark_line(strokeWidth=2)
    return chart.encode(
        x=_ROUND,
        y=y,
        color=alt.Color("what:N", legend=_LEGEND).scale(domain=labels),
        strokeDash=alt.StrokeDash("what:N", legend=_LEGEND, scale=dashes),
        tooltip=[_tip("round:Q"), _tip("what:N", title="line"), _tip("value:Q", format=spec)],
    )


def _sizes() -> alt.LayerChart:
    y = alt.Y("value:Q", title="users, log scale", axis=_LOG).scale(type="log", nice=False)
    margin = alt.Chart(alt.InlineData([])).mark_point(opacity=0).encode(y="value:Q")
    return alt.LayerChart(layer=[_lines("sizes", y, ",d"), margin])


def _shares() -> alt.Chart:
    share = alt.Y("share:Q", title="share of users").stack("zero")
    arm = alt.Color("arm:N", legend=alt.Legend(**_BELOW, labelExpr=_SHORT_LABEL))
    chart: alt.Chart = alt.Chart(alt.NamedData("shares")).mark_area(opacity=0.9)
    return chart.encode(
        x=_ROUND,
        y=share.axis(format="%").scale(domain=[0, 1]),
        color=arm.scale(domain=[]),  # the page knows the arms
        order=alt.Order("rank:Q"),
        tooltip=[_tip("round:Q"), _tip("arm:N"), _tip("share:Q", format=".1%")],
    )


def _groups() -> alt.LayerChart:
    area_labels = [label for label in LINES["groups"].values() if label != HOMOGENEOUS]
    value = _tip("value:Q", title="a round", format=".1f")
    tooltip = [_tip("round:Q"), _tip("what:N", title="groups"), value]
    base = alt.Chart(alt.NamedData("groups")).encode(x=_ROUND, tooltip=tooltip)
    areas = base.transform_filter(alt.datum.what != HOMOGENEOUS)
    areas = areas.mark_area(interpolate="step", opacity=0.85).encode(
        y=alt.Y("value:Q", title="groups a round").stack("zero"),
        color=alt.Color("what:N", legend=_LEGEND).scale(domain=area_labels),
        order="rank:Q",
    )
    stroke = alt.Stroke("what:N", legend=_LEGEND)  # the colour of text, seen on every area
    line = base.transform_filter(alt.datum.what == HOMOGENEOUS).mark_line(strokeWidth=2.5).encode(
        y=alt.Y("value:Q").stack(None),
        stroke=stroke.scale(domain=[HOMOGENEOUS], range="ordinal"),
    )  # fmt: skip
    return alt.LayerChart(layer=[areas, line])


def _estimates() -> alt.LayerChart:
    by_mean = alt.EncodingSortField("mean", order="descending")
    arm = alt.Y("arm:N", title=None, sort=by_mean).axis(labelExpr=_SHORT_LABEL)
    tooltip = [_tip("arm:N"), _tip("mean:Q", format=".3f")]
    base = alt.Chart(alt.NamedData("estimates")).encode(y=arm, tooltip=tooltip)
    low = alt.X("low:Q", title="mean reward over all users").scale(zero=False)
    intervals = base.mark_rule(strokeWidth=2).encode(x=low, x2="high:Q")
    points = base.mark_point(size=70, filled=True, opacity=1).encode(x="mean:Q")
    return alt.LayerChart(layer=[intervals, points])


def _theme(palette: Palette) -> Spec:
    _, text, muted, line, colours = palette
    axis = {"labelColor": muted, "titleColor": muted, "domainColor": line, "tickColor": line}
    return {
        "background": "transparent",
        "font": "system-ui, sans-serif",
        "view": {"stroke": None},
        "axis": {**axis, "gridColor": line, "labelFontSize": 12, "titleFontSize": 12,
                 "titleFontWeight": 500, "titlePadding": 8, "tickCount": 6},
        "legend": {"labelColor": text, "labelFontSize": 12, "symbolSize": 90, "labelLimit": 170,
                   "layout": {"bottom": {"direction": "vertical", "anchor": "start"}}},
        "range": {"category": list(colours), "ordinal": [text]},
        "rule": {"color": colours[0]},
        "point": {"color": colours[0]},
    }  # fmt: skip


THEMES: dict[str, Spec] = {"light": _theme(LIGHT), "dark": _theme(DARK)}
