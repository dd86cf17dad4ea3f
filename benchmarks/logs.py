"""How long ten million rows take: read, profiled and fitted, with the memory that it needs.

Each log is written to a Parquet file and read in a process of its own, whose processor time and
largest memory the system counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from benchmarks.report import page, table

N_ROWS, N_USERS, N_ARMS, SEED = 10_000_000, 200_000, 8, 20_261_125
MAX_SECONDS, MAX_GIGABYTES = 30, 2

FIT = """
import json, resource, sys, time
from shoal.instances import from_log
options = {"time": "time"} if sys.argv[2] else {}
start, seconds = time.perf_counter(), [time.process_time()]
log = from_log(sys.argv[1], **options)
seconds.append(time.process_time())
gain = log.population.gain
seconds.append(time.process_time())
passed = time.perf_counter() - start
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps({"seconds": seconds, "passed": passed, "memory": memory, "gain": gain}))
"""


def main() -> None:
    lines: list[tuple[object, ...]] = []
    with TemporaryDirectory() as folder:
        for name, text, timed in (
            ("user, arm, reward; whole numbers", False, False),
            ("user, arm, reward; text", True, False),
            ("user, arm, reward, time; text", True, True),
        ):
            path = Path(folder) / "log.parquet"
            _rows(text=text, timed=timed).write_parquet(path)
            command = [sys.executable, "-c", FIT, str(path), "timed" if timed else ""]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            result = json.loads(done.stdout)
            start, read, fitted = result["seconds"]
            lines.append(
                (name, f"{path.stat().st_size / 2**20:.0f} MB", f"{read - start:.1f} s",
                 f"{fitted - read:.1f} s", f"{result['passed']:.1f} s",
                 f"{result['memory']:.2f} GB")
            )  # fmt: skip
            print(lines[-1], flush=True)
    page(
        "logs",
        "A log of ten million rows",
        "python -m benchmarks logs",
        f"{N_ROWS:,} rows of {N_USERS:,} users and {N_ARMS} arms in a Parquet file. Processor time "
        "of the whole process, all threads together, which says the same on a busy machine, and "
        f"the time that passed; the aim is {MAX_SECONDS} s and {MAX_GIGABYTES} GB in all.",
        table(
            ["columns", "file", "read and profiled", "fitted", "both, passed", "largest memory"],
            lines,
        ),
        "Reading is bound by the rows: text is turned into numbers once, equal rows are found by "
        "a hash, and with time one sort says who came when. Memory is bound by the columns of the "
        "file, which are held at once, and by about 80 bytes a row beside them. The fit sees "
        "totals of pairs of user and arm only: it is bound by users × arms × arms, of at most "
        "200,000 users, and not by rows.",
    )


def _rows(*, text: bool, timed: bool) -> pl.DataFrame:
    """Make a log in which a user of eight prefers each arm."""
    rng = np.random.default_rng(SEED)
    users, arms = rng.integers(N_USERS, size=N_ROWS), rng.integers(N_ARMS, size=N_ROWS)
    rewards = rng.random(N_ROWS) < np.where(users % N_ARMS == arms, 0.3, 0.2)
    rows = pl.DataFrame({"user": users, "arm": arms, "reward": rewards.astype(np.float64)})
    if text:
        rows = rows.with_columns(
            user=pl.format("customer-{}", "user"), arm=pl.format("offer {}", "arm")
        )
    if timed:
        seconds = pl.Series("time", rng.integers(60 * 86_400, size=N_ROWS) + 1_780_000_000)
        rows = rows.with_columns((seconds * 1_000_000).cast(pl.Datetime("us")))
    return rows
