"""Who is on their best arm, and when: a majority and a minority, beside an earlier version.

``python -m benchmarks.everyone [TREE]`` plays the same instances with this tree and with a checkout
of version 0.1, whose sources are read beside the packages that are installed here. Without TREE
what was recorded of version 0.1 stays. It is not one of the benchmarks that ``make bench`` runs, as
there must be another tree at first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from benchmarks.report import IMAGES, RECORDS, ROOT, record
from shoal.figures import save
from shoal.figures.style import COLOURS, STYLE

N_RUNS = 12
KINDS = ("majority", "minority")
EARLIER = "version 0.1"

PLAY = """
import json, sys
import numpy as np
from shoal.environments import make_environment
from shoal.model import Problem
from shoal.policies import make_policy

run = int(sys.argv[1])
rng = np.random.default_rng([987_654_321, 801, run])
n_users, n_arms, horizon = 60, 6, 20_000
means = 0.7 * rng.uniform(0.15, 0.85, (n_users, n_arms))
means[:, 0] = 0.7
few = rng.permutation(n_users)[:8]
means[few, 1] = 0.9
best, minority = means.argmax(axis=1), np.isin(np.arange(n_users), few)
problem = Problem(n_users, n_arms, 5, horizon=horizon)
environment = make_environment("bernoulli", problem, means, rng=rng)
policy = make_policy("shoal", problem, rng=rng)
edges = np.unique(np.geomspace(1, horizon, 41).astype(int))
sums, rounds, done = np.zeros((2, len(edges))), np.zeros(len(edges)), 0
while done < horizon:
    plan = policy.ask()
    policy.tell(environment.play(plan))
    place = min(np.searchsorted(edges, done, side="right"), len(edges) - 1)
    right = plan.arms == best
    sums[:, place] += plan.repeats * np.array([right[~minority].mean(), right[minority].mean()])
    rounds[place] += plan.repeats
    done += plan.repeats
shown = rounds > 0
shares = (sums / np.maximum(rounds, 1))[:, shown]
print(json.dumps({"round": edges[shown].tolist(), "shares": shares.round(4).tolist()}))
"""


def main(arguments: list[str]) -> None:
    if arguments:
        earlier = _play(Path(arguments[0]))
    else:
        earlier = json.loads((RECORDS / "everyone.json").read_text(encoding="utf-8"))[EARLIER]
    recorded = {EARLIER: earlier, "now": _play(ROOT)}
    record("everyone", recorded)
    save(figure(recorded), IMAGES / "everyone")
    for name, runs in recorded.items():
        late = np.array([[shares[-1] for shares in run["shares"]] for run in runs])
        for kind, shares in zip(KINDS, late.T, strict=True):
            print(
                f"{name}, {kind}, last rounds: mean {shares.mean():.3f}, worst {shares.min():.3f}"
            )


def _play(tree: Path) -> list[dict[str, Any]]:
    """Return what each run gives, in a process of its own with the tree's sources."""

    def play(run: int) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-c", PLAY, str(run)],
            env=os.environ | {"PYTHONPATH": str(tree / "src")},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        print(f"done: {tree}, run {run}", flush=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(play, range(N_RUNS)))


def figure(recorded: dict[str, list[dict[str, Any]]]) -> alt.HConcatChart:
    """Draw both kinds of users in a panel for each version: the mean, and every run as a line."""
    panels = []
    for name, runs in recorded.items():
        cells = pl.concat(
            pl.DataFrame({"round": run["round"], "share": shares}).with_columns(
                kind=pl.lit(kind), run=pl.lit(number)
            )
            for number, run in enumerate(runs)
            for kind, shares in zip(KINDS, run["shares"], strict=True)
        )
        colour = alt.Color("kind:N", title=None, sort=list(KINDS))
        colour = colour.scale(domain=list(KINDS), range=[COLOURS[2], COLOURS[1]])
        base = alt.Chart(cells).encode(
            x=alt.X("round:Q", title="round", scale=alt.Scale(type="log"))
            .axis(values=[1, 10, 100, 1_000, 10_000], format="~s", grid=False),
            y=alt.Y("share:Q", title="share of users on their best arm")
            .scale(domain=[0, 1]).axis(format="%", tickCount=5),
            color=colour.legend(orient="top", labelFontSize=12),
        )  # fmt: skip
        each = base.mark_line(strokeWidth=0.8, opacity=0.3).encode(detail="run:N")
        mean = base.mark_line(strokeWidth=3).encode(y="mean(share):Q")
        panels.append(alt.layer(each, mean, width=330, height=250, title=name))
    title = "52 users agree, 8 like another arm more (C = 5); 12 runs each"
    return alt.hconcat(*panels, spacing=24, title=title, config=STYLE)


if __name__ == "__main__":
    main(sys.argv[1:])
