"""A news app that personalises its front page and never records who clicked.

Plays a population of readers against a running service over HTTP:

    shoal serve                      # writes tokens to shoal-data/tokens.env
    set -a; . shoal-data/tokens.env; set +a
    python examples/news.py          # --url, or SHOAL_URL, says where the service is

Each reader has a taste: the probability of a click on each of the sections. The app shows everyone
the section that Shoal assigns, reports the clicks, and closes the round (`Audience.play` is these
few calls). What the readers' tastes are, only this script knows.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import numpy as np

from shoal.client import Client
from shoal.errors import ShoalError
from shoal.experiments.audience import Audience

TOKENS = ["SHOAL_OPERATOR_TOKEN", "SHOAL_APP_TOKEN", "SHOAL_ANALYST_TOKEN"]
SECTIONS = ["world", "sport", "science", "culture", "business", "local"]


def tastes(n_users: int, rng: np.random.Generator) -> np.ndarray:
    """Return click rates (n_users, n_sections): a favourite, a second choice, and the rest."""
    rates = rng.uniform(0.05, 0.25, (n_users, len(SECTIONS)))
    ranks = rng.permuted(np.tile(np.arange(len(SECTIONS)), (n_users, 1)), axis=1)
    rates[ranks == 0] += 0.6
    rates[ranks == 1] += 0.2
    return rates


def play(args: argparse.Namespace) -> None:
    """Run the campaign and print how the share of clicks grows."""
    rng = np.random.default_rng(args.seed)
    tokens = [os.environ.get(name, "") for name in TOKENS]
    if not all(tokens):
        sys.exit(f"{', '.join(TOKENS)} must be tokens of shoal-data/tokens.env; one is not set")
    operator_token, app_token, analyst_token = tokens
    with (
        Client(args.url, operator_token) as operator,
        Client(args.url, app_token) as app,
        Client(args.url, analyst_token) as analyst,
    ):
        readers = Audience(tastes(args.users, rng), SECTIONS, operator=operator, app=app, rng=rng)
        if args.campaign in operator.campaigns():
            sys.exit(f"--campaign must be a new one; {args.campaign!r} exists")
        readers.join(args.campaign, min_group_size=args.min_group_size, horizon=args.rounds)
        print(f"best single section: {readers.best_single:.3f} clicks per reader")
        print(f"full knowledge:      {readers.full_knowledge:.3f}", flush=True)
        started, clicks = time.perf_counter(), list[float]()
        part = max(1, args.rounds // 10)
        for number in range(1, args.rounds + 1):
            clicks.append(readers.play(args.campaign, number))
            if number % part == 0:
                print(f"round {number:4}: {np.mean(clicks[-part:]):.3f}", flush=True)
        seconds = time.perf_counter() - started
        releases = [analyst.release(args.campaign, n + 1) for n in range(args.rounds)]
    smallest = min(total.reporters for release in releases for total in release.totals)
    print(f"{args.rounds} rounds, {1e3 * seconds / args.rounds:.0f} ms each")
    print(f"smallest total ever released: {smallest} readers")
    if np.mean(clicks[-part:]) <= readers.best_single:
        sys.exit("the app did not get past the best single section")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--url", default=os.environ.get("SHOAL_URL") or "http://127.0.0.1:8000")
    parser.add_argument("--campaign", default="news")
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--min-group-size", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    try:
        play(parser.parse_args())
    except ShoalError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
