"""A plan's crowds: the users on each arm, cut into groups."""

import altair as alt
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.figures.inputs import check_array, check_size
from shoal.figures.style import COLOURS, STYLE

WIDTH, HEIGHT_PER_ARM = 520, 34
NO_GROUP_COLOUR = "#d8d8d8"


def crowds_figure(
    arms: NDArray[np.integer], groups: NDArray[np.integer], *, min_group_size: int
) -> alt.LayerChart:
    """Draw a bar for each arm, with a part for each group and a light one for users in none.

    ``arms`` and ``groups`` are those of a plan, (n_users,); -1 is no group.
    """
    arms = check_array("arms", arms, ("n_users",), whole=True, minimum=0)
    groups = check_array("groups", groups, (len(arms),), whole=True, minimum=-1)
    min_group_size = check_size("min_group_size", min_group_size)
    parts = (
        pl.DataFrame({"arm": arms, "group": groups})
        .group_by("arm", "group")
        .agg(users=pl.len())
        .sort("arm", pl.col("group") < 0, "group")
        .with_columns(
            end=pl.col("users").cum_sum().over("arm"),
            kind=pl.when(pl.col("group") < 0).then(pl.lit("no group")).otherwise(pl.lit("group")),
        )
        .with_columns(start=pl.col("end") - pl.col("users"))
    )
    colour = alt.Color("kind:N", title=None, sort=["group", "no group"]).scale(
        domain=["group", "no group"], range=[COLOURS[0], NO_GROUP_COLOUR]
    )
    bars = (
        alt.Chart(parts)
        .mark_bar(stroke="white", strokeWidth=1)
        .encode(
            x=alt.X("start:Q", title="users").axis(grid=False),
            x2="end:Q",
            y=alt.Y("arm:O", title="arm"),
            color=colour.legend(orient="top"),
            tooltip=["arm:O", "group:O", "users:Q"],
        )
    )
    size_line = (
        alt.Chart(pl.DataFrame({"least": [min_group_size]}))
        .mark_rule(color=COLOURS[1], strokeDash=[4, 3])
        .encode(x="least:Q")
    )
    n_bars = parts["arm"].n_unique()
    return alt.LayerChart(
        layer=[bars, size_line],
        width=WIDTH,
        height=HEIGHT_PER_ARM * max(n_bars, 2),
        title=f"crowds and their groups, of at least {min_group_size} users each",
        config=STYLE,
    )
