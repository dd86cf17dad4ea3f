"""A sweep's results: regret against what was varied, a line for each policy."""

import json
from collections.abc import Sequence

import altair as alt
import polars as pl

from shoal.figures.style import STYLE, colour_and_dash, end_labels, label_places, lines

NUMERIC_COLUMNS = {
    "n_users": "users",
    "n_arms": "arms",
    "min_group_size": "least group C",
    "horizon": "rounds T",
    "participation": "participation",
}
SETTING = {"instance": "instances", "rewards": "rewards", **NUMERIC_COLUMNS}
"""What a sweep may vary apart from policies and their options, with its name for people."""

REGRET_UNIT = "regret per user and round"
LOG_SCALE_RATIO = 20
"""An axis whose largest value is this many times its smallest is logarithmic."""


def varied(summary: pl.DataFrame) -> list[str]:
    """Return the settings that have more than one value."""
    return [name for name in SETTING if summary[name].n_unique() > 1]


def with_labels(summary: pl.DataFrame) -> pl.DataFrame:
    """Add the name of each line: the policy and those options of it that vary."""
    differing = {
        policy: _differing([json.loads(options) for options in part["options"]])
        for (policy,), part in summary.group_by("policy")
    }
    labels = [
        " ".join([policy, *(f"{o}={options[o]}" for o in differing[policy] if o in options)])
        for policy, options in zip(
            summary["policy"], map(json.loads, summary["options"]), strict=True
        )
    ]
    return summary.with_columns(label=pl.Series(labels, dtype=pl.String))


def settings_figures(summary: pl.DataFrame) -> dict[str, alt.LayerChart]:
    """Draw regret per user and round against the number that takes the most values.

    There is a figure for each combination of the other settings, by its name. ``summary`` has
    the columns of ``summarise`` and a label for each line.
    """
    per = pl.col("n_users") * pl.col("horizon")
    scaled = summary.with_columns(pl.col("mean", "low", "high") / per)
    names = varied(summary)
    numbers = [name for name in names if name in NUMERIC_COLUMNS]
    axis = max(numbers, key=lambda name: summary[name].n_unique()) if numbers else None
    rest = [name for name in names if name != axis]
    labels = summary["label"].unique(maintain_order=True).to_list()
    return {
        title: _lines(part, axis, labels, title) if axis else _dots(part, labels, title)
        for title, part in parts(scaled, rest)
    }


def parts(frame: pl.DataFrame, names: Sequence[str]) -> list[tuple[str, pl.DataFrame]]:
    """Split by the settings of these names; each part's title says which it is."""
    if not names:
        return [("All settings", frame)]
    return [
        (", ".join(f"{SETTING[n]}: {_as_text(v)}" for n, v in zip(names, key, strict=True)), part)
        for key, part in frame.group_by(names, maintain_order=True)
    ]


def _lines(part: pl.DataFrame, axis: str, labels: list[str], title: str) -> alt.LayerChart:
    part = part.sort(axis)
    values = part[axis].unique().sort().to_list()
    wide = values[0] > 0 and values[-1] / values[0] >= LOG_SCALE_RATIO
    x = (
        alt.X(f"{axis}:Q", title=NUMERIC_COLUMNS[axis])
        .scale(type="log" if wide else "linear", zero=False, nice=False, padding=12)
        .axis(values=values, format="~s", grid=False)
    )
    colour, _ = colour_and_dash("label", labels)
    y = alt.Y("mean:Q", title=REGRET_UNIT)
    base = alt.Chart(part).encode(x=x, y=y, color=colour)
    intervals = base.mark_rule(strokeWidth=1).encode(y=alt.Y("low:Q", title=""), y2="high:Q")
    points = base.mark_point(filled=True, size=36, opacity=1)
    names = end_labels(label_places(part, "label", axis), "label", axis, colour, dx=8)
    layers = [intervals, *lines(part, "label", x, y, names=labels), points, *names]
    return alt.LayerChart(layer=layers, title=title, config=STYLE)


def _dots(part: pl.DataFrame, labels: list[str], title: str) -> alt.LayerChart:
    """Nothing but policies differ: a row for each."""
    colour, _ = colour_and_dash("label", labels)
    x = alt.X("mean:Q", title=REGRET_UNIT).scale(zero=True)
    y = alt.Y("label:N", title=None, sort="x")
    base = alt.Chart(part).encode(x=x, y=y, color=colour)
    intervals = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=""), x2="high:Q")
    points = base.mark_point(filled=True, size=60, opacity=1)
    return alt.LayerChart(layer=[intervals, points], title=title, config=STYLE)


def _differing(options: list[dict[str, object]]) -> list[str]:
    names = list(dict.fromkeys(name for values in options for name in values))
    return [n for n in names if len({json.dumps(values.get(n)) for values in options}) > 1]


def _as_text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
