"""Is it worth it? Typical cases, rates × rounds × C, and the pictures of the tutorial.

The tutorial's picture is made from the tutorial's own example: the page's Python blocks are run,
and the log that they write is priced.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import altair as alt
import polars as pl

from benchmarks.report import IMAGES, ROOT, page, table
from shoal.experiments import Price, price
from shoal.figures import price_figure, save
from shoal.figures.style import STYLE
from shoal.instances import from_log

N_USERS, SAMPLE, N_ARMS, N_RUNS = 20_000, 2_500, 5, 5
RATES, ROUNDS, SIZES = (0.02, 0.05, 0.2), (30, 100, 300, 1_000), (5, 10, 20, 50)
SEED = 20_261_121
TUTORIAL = ROOT / "docs" / "tutorials" / "worth-it.md"


def main() -> None:
    picture_of_the_tutorial()
    answers: dict[tuple[float, int], Price] = {}
    for rate in RATES:
        for rounds in ROUNDS:
            answers[rate, rounds] = price(
                n_users=N_USERS, n_arms=N_ARMS, rate=rate, horizon=rounds, sample=SAMPLE,
                min_group_sizes=SIZES, n_runs=N_RUNS, seed=SEED,
            )  # fmt: skip
            print(rate, rounds, answers[rate, rounds].recommendation, flush=True)
    save(figure(answers), IMAGES / "cases")
    page(
        "cases",
        "Is it worth it? Typical cases",
        "python -m benchmarks cases",
        f"Gain of `shoal` over the best single arm for everyone, in percent, with its 95 % "
        f"interval: {N_USERS:,} users and {N_ARMS} arms, populations drawn as by "
        f"`shoal price --rate` (six tastes, users about 30 % around them), {N_RUNS} populations "
        f"played by {SAMPLE:,} users each, everyone reports in every round. **Bold**: the interval "
        "lies above 0. *Possible* is what full knowledge of everyone would gain. Populations with "
        "weaker tastes gain less, and where users agree nothing can be gained: price your own log "
        "before you decide ([tutorial](../tutorials/worth-it.md)).",
        "![Gain over the best single arm by rate, rounds and C](../images/cases.png)",
        "A question mark in the figure: the interval holds 0.",
        table(
            ["rate", "rounds", "possible", *(f"C = {size}" for size in SIZES)],
            [_line(rate, rounds, answer) for (rate, rounds), answer in answers.items()],
        ),
    )


def _line(rate: float, rounds: int, answer: Price) -> tuple[object, ...]:
    cells = []
    for cost in answer.costs:
        low, mean, high = (
            x / answer.best_arm for x in (cost.gain.low, cost.gain.mean, cost.gain.high)
        )
        text = f"{_percent(mean)} ({_percent(low)} to {_percent(high)})"
        cells.append(f"**{text}**" if low > 0 else text)
    possible = (answer.full_knowledge - answer.best_arm) / answer.best_arm
    return (str(rate), f"{rounds:,}", f"{possible:+.0%}", *cells)


def _percent(value: float) -> str:
    """Return whole percents with a sign, and 0 without."""
    return f"{value:+.0%}" if round(100 * value) else "0%"


def figure(answers: dict[tuple[float, int], Price]) -> alt.HConcatChart:
    """Draw the gain in percent as a map of C and rounds, a panel for each rate."""
    panels = [
        _panel(f"rate {rate:g}", {n: answers[rate, n] for n in ROUNDS}) for rate in RATES
    ]  # fmt: skip
    return alt.hconcat(*panels, spacing=30, config=STYLE)


def _panel(title: str, answers: dict[int, Price]) -> alt.LayerChart:
    rows = pl.DataFrame(
        [
            {
                "rounds": f"{rounds:,}", "C": cost.min_group_size,
                "gain": 100 * cost.gain.mean / answer.best_arm,
                "text": _percent(cost.gain.mean / answer.best_arm)
                + (" ?" if cost.gain.low <= 0 < cost.gain.mean else ""),
            }
            for rounds, answer in answers.items()
            for cost in answer.costs
        ]
    )  # fmt: skip
    base = alt.Chart(rows).encode(
        x=alt.X("rounds:O", title="rounds", sort=[f"{n:,}" for n in answers]).axis(labelAngle=0),
        y=alt.Y("C:O", title="least group size C"),
    )
    scale = alt.Scale(domain=[-30, 0, 60], range=["#f2a87f", "#ffffff", "#7cc4bf"], clamp=True)
    cells = base.mark_rect().encode(color=alt.Color("gain:Q", scale=scale, legend=None))
    text = base.mark_text(fontSize=13).encode(text="text:N")
    return alt.LayerChart(layer=[cells, text], width=220, height=180, title=title)


def picture_of_the_tutorial() -> None:
    """Run the tutorial's Python blocks in a folder of their own, and draw the price of its log."""
    blocks = re.findall(r"^```python\n(.*?)^```", TUTORIAL.read_text("utf-8"), re.M | re.S)
    home = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            namespace: dict[str, object] = {"__name__": "example"}
            for block in blocks[:2]:
                exec(block, namespace)
            log = from_log(
                "clean.csv", user="customer", arm="offer", reward="bought", time="day",
                min_user_rows=2, drop_duplicates=True,
            )  # fmt: skip
        finally:
            os.chdir(home)
    assert log.visits is not None
    answer = price(
        population=log.population, horizon=100, min_group_sizes=[1, 5, 10, 20], n_runs=5,
        participation=log.visits.participation or 1.0,
    )  # fmt: skip
    save(price_figure(answer.to_dict()), IMAGES / "worth-it")
    print(log.profile, log.visits, answer.recommendation, *answer.notes, sep="\n", flush=True)
