"""A news app that personalises its front page and never records who clicked.

Plays a population of readers against a running service over HTTP:

    shoal serve                      # prints the tokens once
    export SHOAL_OPERATOR_TOKEN=... SHOAL_APP_TOKEN=... SHOAL_ANALYST_TOKEN=...
    python examples/news.py

Each reader has a taste: the probability of a click on each of the sections. The app shows everyone
the section that Shoal assigns, reports the clicks, and closes the round. What the readers' tastes
are, only this script knows.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import numpy as np

from shoal.client import Client

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
    users = [f"reader-{i}" for i in range(args.users)]
    rates = tastes(args.users, rng)
    single = rates.mean(axis=0).max()
    operator = Client(args.url, os.environ["SHOAL_OPERATOR_TOKEN"])
    app = Client(args.url, os.environ["SHOAL_APP_TOKEN"])
    analyst = Client(args.url, os.environ["SHOAL_ANALYST_TOKEN"])
    with operator, app, analyst:
        operator.create_campaign(
            args.campaign,
            arms=SECTIONS,
            min_group_size=args.min_group_size,
            seats=args.users,
            horizon=args.rounds,
            policy=args.policy,
            options={"exploration": args.exploration} if args.exploration else {},
        )
        operator.enrol(args.campaign, users)
        print(f"best single section: {single:.3f} clicks per reader", flush=True)
        started, recent = time.perf_counter(), []
        for number in range(1, args.rounds + 1):
            while operator.open_round(args.campaign, number).state == "wanted":
                pass
            shown = app.assignments(args.campaign, number=number)
            sections = np.array([SECTIONS.index(shown[user]) for user in users])
            clicks = rng.random(args.users) < rates[np.arange(args.users), sections]
            rewards = dict(zip(users, clicks.astype(float).tolist(), strict=True))
            refused = app.report(args.campaign, number, rewards)
            assert not refused, refused[:3]
            operator.close_round(args.campaign, number)
            recent.append(clicks.mean())
            if number % max(1, args.rounds // 10) == 0:
                last = float(np.mean(recent[-args.rounds // 10 :]))
                print(f"round {number:4}: {last:.3f} clicks per reader", flush=True)
        seconds = time.perf_counter() - started
        release = analyst.release(args.campaign, 1)
        smallest = min((total.reporters for total in release.totals), default=0)
    print(f"{args.rounds} rounds in {seconds:.0f} s; smallest total of round 1: {smallest} readers")
    if float(np.mean(recent[-args.rounds // 10 :])) <= single:
        sys.exit("the app did not get past the best single section")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--campaign", default="front-page")
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--min-group-size", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--policy", default="explore-then-commit")
    parser.add_argument("--exploration", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    play(parser.parse_args())


if __name__ == "__main__":
    main()
