"""The price of anonymity: what each group size earns, and when it starts to pay."""

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from shoal.errors import InvalidInputError, type_of
from shoal.figures.inputs import Priced
from shoal.figures.style import COLOURS, STYLE, colour_and_dash, end_labels, label_places, lines
from shoal.palette import LIGHT

WIDTH, HEIGHT = 330, 300
GREY = LIGHT.muted
FIELDS = ("costs", "rounds", "curves", "bands", "best_arm", "full_knowledge")
"""Of a price, what is drawn."""


def price_figure(answer: Mapping[str, Any] | Priced) -> alt.HConcatChart:
    """Draw a ``Price``, or what its ``to_dict`` returns: earnings by group size, and over rounds.

    The left panel has the 95 % interval of the mean as a bar, that of one population as a thin
    line, and a short mark for each run. Grey rules and bands are the best single arm and full
    knowledge with their intervals.
    """
    content = answer.to_dict() if isinstance(answer, Priced) else answer
    if not isinstance(content, Mapping) or not set(FIELDS) <= set(content):
        raise InvalidInputError(
            f"answer must be a Price, or what its to_dict returns, with {', '.join(FIELDS)}; "
            f"got {type_of(answer)}."
        )
    return alt.hconcat(_by_size(content), _over_rounds(content), spacing=40, config=STYLE)


def _by_size(answer: Mapping[str, Any]) -> alt.LayerChart:
    rows = pl.DataFrame(
        [
            {
                "size": cost["min_group_size"],
                **cost["reward"],
                "least": cost["one_population"]["low"],
                "most": cost["one_population"]["high"],
            }
            for cost in answer["costs"]
        ]
    )
    base = alt.Chart(rows).encode(x=alt.X("size:O", title="least group size C").axis(labelAngle=0))
    reward = alt.Y("mean:Q", title="reward per user and round").scale(zero=False)
    one = base.mark_rule(color=COLOURS[0], opacity=0.6)
    one = one.encode(y=alt.Y("least:Q", title=""), y2="most:Q")
    mean = base.mark_rule(color=COLOURS[0], strokeWidth=7, opacity=0.45)
    mean = mean.encode(y=alt.Y("low:Q", title=""), y2="high:Q")
    points = base.mark_point(color=COLOURS[0], filled=True, size=70, opacity=1).encode(y=reward)
    runs = pl.DataFrame(
        [
            {"size": cost["min_group_size"], "run": run}
            for cost in answer["costs"]
            for run in cost["runs"]
        ]
    )
    marks = alt.Chart(runs).mark_tick(color=COLOURS[0], width=16, thickness=1, opacity=0.8)
    marks = marks.encode(x="size:O", y=alt.Y("run:Q", title="").scale(zero=False))
    between_first = WIDTH / len(rows)  # the names of levels stand where no bar is
    layers = (one, mean, marks, points)
    return _panel(answer, "what each group size earns", *layers, names_at=between_first)


def _over_rounds(answer: Mapping[str, Any]) -> alt.LayerChart:
    sizes = [str(cost["min_group_size"]) for cost in answer["costs"]]
    rounds = np.array(answer["rounds"])
    curves = pl.DataFrame(
        {
            "size": [f"C = {size}" for size in sizes for _ in rounds],
            "round": np.tile(rounds, len(sizes)),
            "mean": np.concatenate([answer["curves"][size] for size in sizes]),
        }
    )
    names = curves["size"].unique(maintain_order=True).to_list()
    colour, _ = colour_and_dash("size", names)
    x = alt.X("round:Q", title="round").axis(format="~s", grid=False)
    y = alt.Y("mean:Q", title="reward per user in that round").scale(zero=False)
    bands = answer["bands"].values()
    rewards = [*curves["mean"], *(band[end] for band in bands for end in ("low", "high"))]
    height = 1.2 * (max(rewards) - min(rewards))  # with what the axis has beyond them
    places = label_places(curves, "size", "round", height=height)
    labels = end_labels(places, "size", "round", colour)
    return _panel(answer, "when it starts to pay", *lines(curves, "size", x, y), *labels)


def _panel(
    answer: Mapping[str, Any], title: str, *layers: alt.Chart, names_at: float = WIDTH
) -> alt.LayerChart:
    """Draw the layers on the two levels that any reward is measured against."""
    names = {"best_arm": "best single arm", "full_knowledge": "full knowledge"}
    levels = pl.DataFrame(
        [
            {"name": label, "level": answer[name], **answer["bands"][name]}
            for name, label in names.items()
        ]
    )
    # Room for the names above the upper level and below the lower one.
    base = alt.Chart(levels).encode(y=alt.Y("level:Q", title="").scale(zero=False, padding=16))
    bands = (
        alt.Chart(levels)
        .mark_rect(color=GREY, opacity=0.12)
        .encode(y=alt.Y("low:Q", title=""), y2="high:Q", x=alt.value(0), x2=alt.value(WIDTH))
    )
    rules = base.mark_rule(color=GREY, strokeDash=[4, 3])
    sides: dict[str, dict[str, Any]] = {
        names["best_arm"]: {"baseline": "top", "dy": 4},
        names["full_knowledge"]: {"baseline": "bottom", "dy": -4},
    }
    texts = [
        base.transform_filter(alt.datum.name == name)
        .mark_text(align="right" if names_at == WIDTH else "center", dx=-4, color=GREY, **side)
        .encode(x=alt.value(names_at), text="name:N")
        for name, side in sides.items()
    ]
    all_layers = [alt.LayerChart(layer=[bands, rules, *texts]), *layers]
    return alt.LayerChart(layer=all_layers, width=WIDTH, height=HEIGHT, title=title)
