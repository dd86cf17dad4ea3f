"""What a learner believes against what is true: a point for each user and arm."""

from collections.abc import Mapping

import altair as alt
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.errors import InvalidInputError, type_of
from shoal.figures.inputs import check_array
from shoal.figures.style import COLOURS, STYLE
from shoal.palette import LIGHT

SIDE = 250
KINDS_OF_ARM = ["the user's best arm", "other arms"]


def estimates_figure(
    means: NDArray[np.floating],
    estimates: Mapping[str, NDArray[np.floating]],
    *,
    title: str,
) -> alt.HConcatChart:
    """Draw a panel for each set of estimates, (n_users, n_arms) like ``means``, by its name."""
    means = check_array("means", means, ("n_users", "n_arms"))
    if not isinstance(estimates, Mapping) or not estimates:
        raise InvalidInputError(
            "estimates must map at least one name to an array like means; "
            f"got {type_of(estimates)}."
        )
    best = means == means.max(axis=1, keepdims=True)
    kind = np.where(best, *KINDS_OF_ARM).ravel()
    colour = alt.Color("kind:N", title=None, sort=KINDS_OF_ARM)
    colour = colour.scale(domain=KINDS_OF_ARM, range=COLOURS[:2])
    shape = alt.Shape("kind:N", title=None, sort=KINDS_OF_ARM)
    shape = shape.scale(domain=KINDS_OF_ARM, range=["triangle-up", "circle"])
    share = alt.Scale(domain=[0, 1], clamp=True)
    diagonal = (
        alt.Chart(pl.DataFrame({"true": [0.0, 1.0], "believed": [0.0, 1.0]}))
        .mark_line(color=LIGHT.muted, strokeDash=[4, 3], strokeWidth=1)
        .encode(x="true:Q", y="believed:Q")
    )
    panels = []
    for name, values in estimates.items():
        estimate = check_array(f"estimates[{name!r}]", values, means.shape)
        cells = pl.DataFrame({"true": means.ravel(), "believed": estimate.ravel(), "kind": kind})
        points = alt.Chart(cells.sort("kind")).mark_point(filled=True, size=34, opacity=0.75)
        points = points.encode(
            x=alt.X("true:Q", title="true mean", scale=share).axis(grid=False, tickCount=5),
            y=alt.Y("believed:Q", title="estimated mean", scale=share).axis(tickCount=5),
            color=colour.legend(orient="top", labelFontSize=12, symbolSize=70),
            shape=shape,
        )
        panels.append(alt.LayerChart(layer=[diagonal, points], width=SIDE, height=SIDE, title=name))
    return alt.hconcat(*panels, spacing=24, title=title, config=STYLE)
