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
HOLDOUT = "holdout, measured"

LINES = {
    "reward": {
        "reward": "reward",
        "holdout": HOLDOUT,
        "best": "best single arm, estimated",
        "first": "first rounds",
    },
    "sizes": {"total": "smallest total", "typical": "mean total"},
    "groups": {
        "whole": "whole", "merged": "merged", "withheld": "withheld", "homogeneous": HOMOGENEOUS,
    },
}  # fmt: skip
"""For each chart of lines, the columns of the data and their labels; the first is on top.

``first`` has one value for all rounds.
"""
LINE_DASHES = {
    "reward": {"reward": [1, 0], HOLDOUT: [1, 0], "best single arm, estimated": [7, 3],
               "first rounds": [2, 3]},
    "sizes": {"smallest total": [1, 0], "mean total": [7, 3]},
}  # fmt: skip
NOTES = "notes"  # the data of all charts over rounds

Spec = dict[str, Any]

_tip = alt.Tooltip

_ROUND = (
    alt.X("round:Q", title="round")
    .axis(grid=False, format="d", labelExpr="datum.value % 1 ? '' : datum.label")
    .scale(zero=False, nice=False)
)
# A long name keeps both ends: names often begin alike.
_SHORT_LABEL = (
    "length(datum.label) > 21 "
    "? slice(datum.label, 0, 11) + '…' + slice(datum.label, -9) : datum.label"
)
_BELOW: Spec = {"orient": "bottom", "direction": "horizontal", "title": None}
_LEGEND = alt.Legend(**_BELOW)


def specs(*, min_size: int = 1, noise: bool = False, holdout: bool = False) -> dict[str, Spec]:
    """Return a campaign's charts as Vega-Lite, by name; each chart's data has the chart's name.

    ``min_size`` is C: what lies below it is shaded, as no total can. With noise nobody knows which
    totals are homogeneous.
    """
    by_name = deepcopy(_specs())
    shade, label = by_name["sizes"]["layer"][:2]
    shade["data"] = {"values": [{"low": 0, "high": min_size}]}
    text = f"below C = {min_size} nothing is released"
    label["data"] = {"values": [{"value": min_size / 2, "text": text}]}
    if noise:
        by_name["groups"]["layer"].pop(1)
    if not holdout:
        encoding = by_name["reward"]["layer"][0]["encoding"]
        for channel in ("color", "strokeDash"):
            scale = encoding[channel]["scale"]
            place = scale["domain"].index(HOLDOUT)
            del scale["domain"][place]
            if "range" in scale:
                del scale["range"][place]
    return by_name


@lru_cache(maxsize=1)
def _specs() -> dict[str, Spec]:
    reward = alt.Y("value:Q", title="mean reward").scale(zero=False)
    charts: dict[str, alt.LayerChart] = {
        "reward": _with_notes(_lines("reward", reward)),
        "shares": _with_notes(_shares()),
        "sizes": _with_notes(*_sizes()),
        "groups": _with_notes(*_groups()),
        "estimates": _estimates(),
    }
    by_name = {
        name: chart.properties(width="container", height=HEIGHT).to_dict()
        for name, chart in charts.items()
    }
    for spec in by_name.values():
        del spec["config"]  # the page's theme
    return by_name


def _with_notes(*layers: alt.Chart) -> alt.LayerChart:
    """Return a chart over rounds on which notes are marked, by their numbers."""
    base = alt.Chart(alt.NamedData(NOTES)).encode(x=_ROUND)
    rules = base.mark_rule(strokeDash=[3, 3], strokeWidth=1, opacity=0.8, style="note")
    labels = base.mark_text(baseline="bottom", dy=-3, fontSize=11, style="note-label")
    return alt.LayerChart(layer=[*layers, rules, labels.encode(y=alt.value(0), text="label:N")])


def _lines(name: str, y: alt.Y) -> alt.Chart:
    labels = list(LINES[name].values())
    dashes = alt.Scale(domain=labels, range=list(LINE_DASHES[name].values()))
    chart: alt.Chart = alt.Chart(alt.NamedData(name)).mark_line(strokeWidth=2)
    return chart.encode(
        x=_ROUND,
        y=y,
        color=alt.Color("what:N", legend=_LEGEND).scale(domain=labels),
        strokeDash=alt.StrokeDash("what:N", legend=_LEGEND, scale=dashes),
        # The holdout is small, so that its line moves a lot.
        strokeWidth=alt.when(alt.datum.what == HOLDOUT).then(alt.value(1)).otherwise(alt.value(2)),
    )


def _sizes() -> tuple[alt.Chart, ...]:
    """Return the shade below C and its label, which are no alarm, and the lines above it."""
    y = alt.Y("value:Q", title="reporters behind a total").scale(zero=True)
    shade = alt.Chart(alt.InlineData([])).mark_rect(opacity=0.7, style="shade")
    shade = shade.encode(y="low:Q", y2="high:Q")
    label = alt.Chart(alt.InlineData([])).mark_text(align="left", dx=6, style="shade-label")
    label = label.encode(x=alt.value(0), y="value:Q", text="text:N")
    return shade, label, _lines("sizes", y)


def _shares() -> alt.Chart:
    share = alt.Y("share:Q", title="share of users").stack("zero")
    arm = alt.Color("arm:N", legend=alt.Legend(**_BELOW, labelExpr=_SHORT_LABEL))
    chart: alt.Chart = alt.Chart(alt.NamedData("shares")).mark_area(opacity=0.9)
    return chart.encode(
        x=_ROUND,
        y=share.axis(format="%").scale(domain=[0, 1]),
        color=arm.scale(domain=[]),  # the page knows the arms
        order=alt.Order("rank:Q"),
    )


def _groups() -> tuple[alt.Chart, ...]:
    area_labels = [label for label in LINES["groups"].values() if label != HOMOGENEOUS]
    base = alt.Chart(alt.NamedData("groups")).encode(x=_ROUND)
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
    return areas, line


def _estimates() -> alt.LayerChart:
    by_mean = alt.EncodingSortField("mean", order="descending")
    arm = alt.Y("arm:N", title=None, sort=by_mean).axis(labelExpr=_SHORT_LABEL)
    numbers = [_tip(f"{name}:Q", format=".3f") for name in ("mean", "low", "high", "spread")]
    best = _tip("best:Q", title="best for", format=".0%")
    tooltip = [_tip("arm:N"), *numbers[:3], best, numbers[3]]
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
        "style": {"note": {"color": muted}, "note-label": {"color": text, "fontWeight": 600},
                  "shade": {"color": line}, "shade-label": {"color": muted, "fontSize": 11}},
    }  # fmt: skip


THEMES: dict[str, Spec] = {"light": _theme(LIGHT), "dark": _theme(DARK)}
