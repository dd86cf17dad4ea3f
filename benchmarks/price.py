"""What ``shoal price`` foretells beside what fresh, full-size simulations find.

The prediction plays samples of the population. Beside it stand simulations of all users on
populations that the prediction has not seen, and the same ones with smaller samples: what is left
between the sizes is the bias of playing a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from benchmarks.report import IMAGES, page, table
from shoal.experiments import Price, price
from shoal.experiments.statistics import mean_interval
from shoal.figures import price_figure, save

N_USERS, N_ARMS, RATE, ROUNDS = 50_000, 10, 0.05, 300
SIZES = (1, 5, 10, 20, 50)
SAMPLES = (2_500, 10_000)
N_FRESH = 8
SEED = 20_221_114  # of the fresh populations; the prediction has the command's default


def main(sizes: Sequence[int] = SIZES) -> None:
    start = perf_counter()
    predicted = price(
        n_users=N_USERS, n_arms=N_ARMS, rate=RATE, horizon=ROUNDS, min_group_sizes=SIZES
    )
    seconds = perf_counter() - start
    save(price_figure(predicted.to_dict()), IMAGES / "price-benchmark")
    print(f"done: the prediction, {seconds:.0f} s", flush=True)
    found = {}
    for sample in (*SAMPLES, N_USERS):
        found[sample] = price(
            n_users=N_USERS, n_arms=N_ARMS, rate=RATE, horizon=ROUNDS, min_group_sizes=sizes,
            n_runs=N_FRESH, seed=SEED, sample=sample,
        )  # fmt: skip
        print(f"done: samples of {sample:,}", flush=True)
    fresh = found[N_USERS]
    page(
        "price",
        "The price of anonymity, predicted and measured",
        "make bench",
        f"`shoal price --users {N_USERS} --arms {N_ARMS} --rate {RATE} --rounds {ROUNDS} "
        f"--min-group-size {','.join(map(str, SIZES))}` took {seconds:.0f} s. It says:",
        "> " + predicted.recommendation,
        "![Reward of each group size with intervals, and over the rounds]"
        "(../images/price-benchmark.png)",
        f"Beside its prediction of the reward per user and round stand {N_FRESH} fresh populations "
        f"of all {N_USERS:,} users each, drawn with another seed. The mean of the fresh ones has "
        "an interval of its own; the last column counts those that lie where the prediction "
        "expects 95 % of single populations.",
        table(
            ["C", "predicted", "95 % interval", "found", "± 95 %", "found is inside",
             "single ones inside"],
            [_line(cost.min_group_size, predicted, fresh) for cost in fresh.costs],
        ),
        "## The bias of playing a sample",
        f"Share of the gap captured on the same {N_FRESH} populations, and in brackets the mean "
        f"difference to all {N_USERS:,} users in reward, ± 95 %.",
        table(
            ["C", *(f"{sample:,} users" for sample in SAMPLES), f"{N_USERS:,} users"],
            [
                (
                    cost.min_group_size,
                    *(_bias(found[sample], fresh, place) for sample in SAMPLES),
                    f"{cost.share.mean:.1%}",
                )
                for place, cost in enumerate(fresh.costs)
            ],
        ),
    )  # fmt: skip


def _line(size: int, predicted: Price, fresh: Price) -> tuple[object, ...]:
    said = next(cost for cost in predicted.costs if cost.min_group_size == size)
    seen = next(cost for cost in fresh.costs if cost.min_group_size == size)
    inside = said.reward.low <= seen.reward.mean <= said.reward.high
    one = said.one_population
    return (
        size,
        f"{said.reward.mean:.4f}",
        f"{said.reward.low:.4f} to {said.reward.high:.4f}",
        f"{seen.reward.mean:.4f}",
        f"{seen.reward.half:.4f}",
        "yes" if inside else "NO",
        f"{sum(one.low <= value <= one.high for value in seen.runs)} of {len(seen.runs)}",
    )


def _bias(small: Price, full: Price, place: int) -> str:
    cost = small.costs[place]
    off = mean_interval(np.array(cost.runs) - np.array(full.costs[place].runs))
    return f"{cost.share.mean:.1%} ({off.mean:+.4f} ± {off.half:.4f})"
