"""How many users are on each arm in each assignment of a decomposition."""

import altair as alt
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.figures.inputs import check_array, check_size
from shoal.figures.style import COLOURS, STYLE

MAX_COLUMNS = 300


def loads_figure(loads: NDArray[np.integer], *, min_crowd: int, title: str) -> alt.LayerChart:
    """Draw crowds (n_assignments, n_arms) as a heat map.

    An arm that nobody plays is left white; a crowd below ``min_crowd`` is crossed out.

    Of very many assignments an even sample is shown.
    """
    loads = check_array("loads", loads, ("n_assignments", "n_arms"), whole=True, minimum=0)
    min_crowd = check_size("min_crowd", min_crowd)
    shown = np.unique(np.linspace(0, len(loads) - 1, min(len(loads), MAX_COLUMNS)).astype(int))
    n_arms = loads.shape[1]
    cells = pl.DataFrame(
        {
            "assignment": np.repeat(np.arange(len(shown)), n_arms),
            "arm": np.tile(np.arange(n_arms), len(shown)),
            "users": loads[shown].ravel(),
        }
    )
    assignment = alt.X("assignment:O", title=f"{len(shown)} of {len(loads)} assignments")
    base = alt.Chart(cells).encode(
        x=assignment.axis(labels=False, ticks=False), y=alt.Y("arm:O", title="arm")
    )
    users = alt.Color("users:Q", title="users").scale(scheme="teals")
    crowds = base.transform_filter(alt.datum.users > 0).mark_rect().encode(color=users)
    small = base.mark_text(text="✕", fontSize=9, color=COLOURS[1]).transform_filter(
        (alt.datum.users > 0) & (alt.datum.users < min_crowd)
    )
    return alt.LayerChart(
        layer=[crowds, small],
        width=560,
        height=max(90, 26 * n_arms),
        title=title,
        config=STYLE,
    )
