"""Run the benchmarks that are named, or all of them."""

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
    "people",
    "cases",
    "shards",
    "service",
    "dashboard",
)


def main(names: list[str]) -> None:
    for name in names or ALL:
        if name not in ALL:
            sys.exit(f"benchmark must be one of {', '.join(ALL)}; got {name!r}.")
        import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
