"""Is it worth it? Typical cases, rates × rounds × C."""

from __future__ import annotations

import altair as alt
import polars as pl

from benchmarks.report import IMAGES, page, table
from shoal.experiments import Price, price
from shoal.experiments.statistics import Interval
from shoal.figures import save
from shoal.figures.style import STYLE

N_USERS, SAMPLE, N_ARMS, N_RUNS = 20_000, 2_500, 5, 5
RATES, ROUNDS, SIZES = (0.02, 0.05, 0.2), (30, 100, 300, 1_000), (5, 10, 20, 50)
SEED = 20_261_121


def main() -> None:
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
        f"`shoal price --rate` (six tastes, users vary by about 30 % around them), {N_RUNS} "
        f"populations played by {SAMPLE:,} users each, everyone reports in every round. "
        "**Bold**: the interval lies above 0. *Possible* is what full knowledge of everyone would "
        "gain. Populations with weaker tastes gain less, and where users agree nothing can be "
        "gained: price your own log before you decide ([tutorial](../tutorials/worth-it.md)).",
        "![Gain over the best single arm by rate, rounds and C](../images/cases.png)",
        "A question mark in the figure: the interval holds 0.",
        "The table's first row: "
        f"`shoal price --users {N_USERS} --arms {N_ARMS} --rate {RATES[0]} --rounds {ROUNDS[0]} "
        f"--min-group-size {','.join(map(str, SIZES))} --runs {N_RUNS} --sample {SAMPLE} "
        f"--seed {SEED}`. For the others, change the rate and the rounds.",
        table(
            ["rate", "rounds", "possible", *(f"C = {size}" for size in SIZES)],
            [_line(rate, rounds, answer) for (rate, rounds), answer in answers.items()],
        ),
    )


def _line(rate: float, rounds: int, answer: Price) -> tuple[object, ...]:
    cells = []
    for cost in answer.costs:
        text = in_table(cost.gain, answer.best_arm)
        cells.append(f"**{text}**" if cost.gain.low > 0 else text)
    possible = (answer.full_knowledge - answer.best_arm) / answer.best_arm
    return (str(rate), f"{rounds:,}", f"{possible:+.0%}", *cells)


def in_table(gain: Interval, best_arm: float) -> str:
    """Return a gain with its interval; a bound that would round to 0 has one more decimal."""
    low, high = (percent(bound / best_arm, digits=1) for bound in (gain.low, gain.high))
    return f"{percent(gain.mean / best_arm)} ({low} to {high})"


def in_figure(gain: Interval, best_arm: float) -> str:
    """Return a gain, with a question mark where its interval holds 0."""
    return percent(gain.mean / best_arm) + (" ?" if gain.low <= 0 <= gain.high else "")


def percent(value: float, *, digits: int = 0) -> str:
    """Return whole percents with a sign, and 0 without; with digits where it would round to 0.

    >>> percent(-0.004), percent(-0.004, digits=1), percent(0.0001, digits=1), percent(0.123)
    ('0%', '-0.4%', '0%', '+12%')
    """
    for places in (0, digits):
        if round(100 * value, places):
            return f"{value:+.{places}%}"
    return "0%"


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
                "text": in_figure(cost.gain, answer.best_arm),
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
