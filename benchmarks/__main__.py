"""Run the benchmarks that are named; ``all`` runs every one that makes a table."""

from __future__ import annotations

import sys
from importlib import import_module

ALL = (
    "paper",
    "reproduction",
    "regret",
    "survey",
    "minorities",
    "calibration",
    "guarantee",
    "sensitivity",
    "conditions",
    "populations",
    "growth",
    "scaling",
    "speed",
    "throughput",
    "decompositions",
    "theory",
    "engines",
    "price",
    "placebo",
    "sharp",
    "people",
    "cases",
    "logs",
    "shards",
    "grouping",
    "service",
    "dashboard",
    "firsthour",
)
ALONE = ("soak",)  # takes half an hour, and makes no table


def main(names: list[str]) -> None:
    if not names or names == ["--help"]:
        print("Name benchmarks to run, or all:", *ALL, *ALONE, sep="\n  ")
        return
    for name in ALL if names == ["all"] else names:
        if name not in ALL + ALONE:
            sys.exit(f"benchmark must be one of all, {', '.join(ALL + ALONE)}; got {name!r}.")
        print(f"{name}: its page is written when all of it is measured", flush=True)
        import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
