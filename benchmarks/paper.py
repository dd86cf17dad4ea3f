"""The paper's whole experiment, and whether each of its findings holds here (Appendix B)."""

from __future__ import annotations

import re
from time import perf_counter

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.report import IMAGES, ROOT, page, table
from shoal.experiments import Comparison, compare
from shoal.experiments.statistics import mean_interval
from shoal.figures import regret_figures, save

SHORT = {
    "ucb": "ucb",
    "lp": "elimination-lp",
    "random": "elimination-random",
    "greedy": "elimination-greedy",
    "commit": "explore-then-commit",
}


def main() -> None:
    start = perf_counter()
    result = compare(
        policies=[*SHORT.values(), "elimination-blocks", "pooled-elimination", "shoal"],
        progress=lambda done, rounds, total: print(f"done: {done}", flush=True) if done else None,
    )
    seconds = perf_counter() - start
    IMAGES.mkdir(parents=True, exist_ok=True)
    paper = result.curves().filter(pl.col("policy").is_in([*SHORT.values(), "shoal"]))
    for name, figure in regret_figures(paper, records=result.records).items():
        save(figure, IMAGES / f"regret-{name}")
    summary = result.summary()
    user_rounds = int(summary["user_rounds"].sum())
    headline = _headline(result)
    page(
        "paper",
        "The paper's experiment",
        "make bench",
        "50 users, 5 arms, groups of at least 4, 100,000 rounds, 20 runs. Total regret of all "
        "users: the mean with its 95 % interval, and the least and the largest of the runs. "
        "Options were chosen by `shoal tune` on other instances; `shoal` has none. UCB sees every "
        "reward. The figures show the paper's five and `shoal`; thin lines are single runs.",
        headline,
        "![uniform](../images/regret-uniform.png)",
        "![linear](../images/regret-linear.png)",
        "## The paper's findings",
        "Differences are taken run by run on the same instances; an interval that covers 0 decides "
        "nothing.",
        table(["finding", "instances", "measured", "holds"], _findings(result)),
        "## Speed",
        f"{user_rounds:,} user-rounds in {seconds:.0f} s of wall time, compilation included: "
        f"{user_rounds / seconds / 1e6:.1f} million user-rounds per second.",
    )
    readme = ROOT / "README.md"
    text = re.sub(
        r"(<!-- headline -->).*?(<!-- /headline -->)",
        lambda match: f"{match[1]}\n{headline}\n{match[2]}",
        readme.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    readme.write_text(text, encoding="utf-8")


def _headline(result: Comparison) -> str:
    """Return the table of means with their intervals, and of the best and the worst run."""
    summary = result.summary()
    last = result.records.filter(pl.col("round") == result.config["horizon"])
    runs = last.group_by("instance", "policy").agg(best=pl.min("regret"), worst=pl.max("regret"))
    cells = {
        (row["policy"], row["instance"]): (
            f"{row['mean']:,.0f} ± {row['high'] - row['mean']:,.0f}",
            f"{row['best']:,.0f} to {row['worst']:,.0f}",
        )
        for row in summary.join(runs, on=["instance", "policy"]).to_dicts()
    }
    order = summary.group_by("policy").agg(pl.mean("mean")).sort("mean")["policy"]
    return table(
        ["policy", "uniform", "best to worst run", "linear", "best to worst run"],
        [(policy, *cells[policy, "uniform"], *cells[policy, "linear"]) for policy in order],
    )


def _totals(result: Comparison, instance: str) -> dict[str, NDArray[np.float64]]:
    last = result.records.filter(
        (pl.col("round") == result.config["horizon"]) & (pl.col("instance") == instance)
    ).sort("run")
    return {
        short: last.filter(pl.col("policy") == policy)["regret"].to_numpy()
        for short, policy in SHORT.items()
    }


def _findings(result: Comparison) -> list[tuple[str, str, str, str]]:
    rows = []
    for instance in ("uniform", "linear"):
        totals = _totals(result, instance)
        means = {name: values.mean() for name, values in totals.items()}
        ratio = min(means[name] for name in means if name != "ucb") / means["ucb"]
        rows.append(
            (
                "UCB about ten times below the best anonymous policy",
                instance,
                f"{ratio:.1f} times",
                "yes" if 8 <= ratio <= 12 else "roughly" if 5 <= ratio <= 20 else "no",
            )
        )
        gap = mean_interval(totals["random"] - totals["lp"])
        apart = abs(means["random"] - means["lp"]) / means["lp"]
        rows.append(
            (
                "random and LP about equal",
                instance,
                f"{apart:.0%} apart; difference {gap.low:,.0f} to {gap.high:,.0f}",
                "yes" if apart < 0.15 else "no",
            )
        )
        for worse, better in (
            ("greedy", "random"), ("greedy", "lp"), ("commit", "random"), ("commit", "lp"),
        ):  # fmt: skip
            rows.append(_order(worse, better, instance, totals))
    rows.append(_order("commit", "greedy", "uniform", _totals(result, "uniform")))
    rows.append(_order("greedy", "commit", "linear", _totals(result, "linear")))
    return rows


def _order(
    worse: str, better: str, instance: str, totals: dict[str, NDArray[np.float64]]
) -> tuple[str, str, str, str]:
    gap = mean_interval(totals[worse] - totals[better])
    verdict = "yes" if gap.low > 0 else "no" if gap.high < 0 else "undecided"
    return (
        f"{SHORT[worse]} worse than {SHORT[better]}",
        instance,
        f"difference {gap.low:,.0f} to {gap.high:,.0f}",
        verdict,
    )
