"""The two pictures of ``shoal demo``: how it learns, and who gets what in the end."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from shoal.arrays import FloatArray
from shoal.figures.style import COLOURS, STYLE

WIDTH, HEIGHT = 560, 300


def learning_figure(
    rewards: Sequence[float], references: dict[str, float], *, title: str
) -> alt.LayerChart:
    """Draw the mean reward of each round, its running mean, and what could be earned.

    ``references`` are lines across, by name.
    """
    frame = pl.DataFrame({"round": range(1, len(rewards) + 1), "reward": list(rewards)})
    window = max(1, len(rewards) // 20)
    frame = frame.with_columns(mean=pl.col("reward").rolling_mean(window, min_samples=1))
    rounds = alt.X("round:Q", title="round").axis(grid=False, tickMinStep=1)
    reward = alt.Y("reward:Q", title="learners who come back").axis(format="~%")
    base = alt.Chart(frame)
    points = base.mark_circle(size=14, color=COLOURS[0], opacity=0.35).encode(x=rounds, y=reward)
    line = base.mark_line(strokeWidth=3, color=COLOURS[0]).encode(x=rounds, y="mean:Q")
    across = pl.DataFrame(
        {"name": list(references), "y": list(references.values()), "round": len(rewards)}
    )
    rules = alt.Chart(across).mark_rule(color="#4a4a4a", strokeDash=[6, 4]).encode(y="y:Q")
    labels = (
        alt.Chart(across)
        .mark_text(align="right", baseline="bottom", dy=-3, fontSize=12, color="#4a4a4a")
        .encode(x=rounds, y="y:Q", text="name:N")
    )
    layers = [rules, points, line, labels]
    return alt.LayerChart(layer=layers, width=WIDTH, height=HEIGHT, title=title, config=STYLE)


def shares_figure(
    shares: FloatArray, tastes: Sequence[str], reminders: Sequence[str], *, title: str
) -> alt.LayerChart:
    """Draw the share of each taste's learners, (n_tastes, n_arms), who get each reminder."""
    rows = [
        {"taste": taste, "reminder": reminder, "share": float(shares[i, j])}
        for i, taste in enumerate(tastes)
        for j, reminder in enumerate(reminders)
    ]
    base = alt.Chart(pl.DataFrame(rows)).encode(
        x=alt.X("reminder:N", sort=list(reminders), title="reminder").axis(
            labelAngle=-30, orient="top"
        ),
        y=alt.Y("taste:N", sort=list(tastes), title="learners"),
    )
    cells = base.mark_rect(stroke="white", strokeWidth=2).encode(
        color=alt.Color("share:Q", legend=None).scale(domain=[0, 1], range=["#f2f6fa", COLOURS[0]])
    )
    numbers = base.mark_text(fontSize=12).encode(
        text=alt.Text("share:Q", format=".0%"),
        color=alt.condition("datum.share > 0.5", alt.value("white"), alt.value("#333333")),
    )
    width, height = max(90 * len(reminders), 270), max(34 * len(tastes), 120)
    layers = [cells, numbers]
    return alt.LayerChart(layer=layers, width=width, height=height, title=title, config=STYLE)
