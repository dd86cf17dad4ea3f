"""A campaign's page in a real browser: bytes moved and the time to the last chart.

The campaign has 100,000 users and 2,000 rounds, ten arms, and what the release would have stored
of each round: its frozen plan, its summary and the learner's estimates. Server and browser run
side by side on this machine; the page is loaded by a browser that has never seen it, then again.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright
from sqlalchemy import insert

from benchmarks.report import page as write_page
from benchmarks.report import table
from shoal.service.aggregator import Aggregator
from shoal.service.application import create_app
from shoal.service.audit import RULES
from shoal.service.campaign import Campaign
from shoal.service.dashboard import assets, charts
from shoal.service.process import open_store
from shoal.service.store import aggregator as store
from shoal.wire import LearnerProgress

N_USERS, N_ROUNDS, N_ARMS = 100_000, 2_000, 10
PLANS = 200  # rounds that keep their plan; no page reads one, but they fill the database
NAME = "large"
RUNS = 7
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip


def main() -> None:
    with (
        TemporaryDirectory() as folder,
        service(Path(folder)) as (url, token),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        first = [visit(browser, url, token) for _ in range(RUNS)]
        browser.close()
    rows = []
    for what in first[0]:
        values = [run[what] for run in first]
        unit = "ms" if what.endswith("ms") else "KB"
        label = what.removesuffix(", ms").removesuffix(", KB")
        rows.append((label, f"{np.median(values):,.0f} {unit}", f"{max(values):,.0f} {unit}"))
    write_page(
        "dashboard",
        "The dashboard",
        "python -m benchmarks dashboard",
        f"A campaign's page with {N_USERS:,} users, {N_ROUNDS:,} rounds and {N_ARMS} arms in "
        f"Chromium, {RUNS} visits by browsers that have never seen it. Bytes are as they go over "
        "the wire, compressed.",
        table(["what", "median", "worst"], rows),
        f"While it ran, the machine's load was {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; "
        "times are at their best below one a core.",
        "Data is the page itself, which carries the curves, or the answer to a refresh. The "
        "chart script is most of the rest; browsers keep it.",
    )


def visit(browser: Browser, url: str, token: str) -> dict[str, float]:
    """Return what one new visitor's page costs."""
    context = browser.new_context(base_url=url, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto("/login")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/")
    found = {}
    for what in ("first visit", "second visit"):
        sizes: dict[str, float] = {}
        network = context.new_cdp_session(page)
        network.send("Network.enable")
        network.send("Performance.enable", {"timeDomain": "threadTicks"})
        network.on("Network.responseReceived", _note(sizes))
        network.on("Network.loadingFinished", _weigh(sizes))
        address = f"/campaigns/{NAME}"
        started = time.perf_counter()
        page.goto(address, wait_until="commit")
        page.wait_for_selector("html[data-drawn]", state="attached")
        found[f"{what}: to the last chart, ms"] = 1e3 * (time.perf_counter() - started)
        found[f"{what}: to the words, ms"] = _first_paint(page)
        metrics = network.send("Performance.getMetrics")["metrics"]
        work = {item["name"]: item["value"] for item in metrics}["TaskDuration"]
        found[f"{what}: processor time in the browser's page, ms"] = 1e3 * work
        weights = {key: size for key, size in sizes.items() if not key.startswith("#")}
        found[f"{what}: everything, KB"] = sum(weights.values()) / 1e3
        found[f"{what}: data, KB"] = weights[url + address] / 1e3
        network.detach()
    found["a refresh with nothing new, KB"] = _refresh(page, N_ROUNDS)
    found["a refresh with one more round, KB"] = _refresh(page, N_ROUNDS - 1)
    context.close()
    return found


def _first_paint(page: Page) -> float:
    """Return when the browser first showed something of the page, in milliseconds."""
    while True:  # it may be told a little later
        found: list[float] = page.evaluate(
            "performance.getEntriesByName('first-contentful-paint').map(e => e.startTime)"
        )
        if found:
            return found[0]
        page.wait_for_timeout(20)


def _note(sizes: dict[str, float]) -> Any:
    def note(event: dict[str, Any]) -> None:
        sizes[f"#{event['requestId']}"] = 0.0
        sizes[f"#{event['requestId']}:{event['response']['url']}"] = 0.0

    return note


def _weigh(sizes: dict[str, float]) -> Any:
    def weigh(event: dict[str, Any]) -> None:
        start = f"#{event['requestId']}:"
        for key in list(sizes):
            if key.startswith(start):
                sizes[key.removeprefix(start)] = event["encodedDataLength"]

    return weigh


def _refresh(page: Page, after: int) -> float:
    size: int = page.evaluate(
        """async (after) => {
          const width = JSON.parse(document.getElementById('data').textContent).view.width;
          const path = `/v1/campaigns/large/progress?after=${after}&width=${width}`;
          await (await fetch(path)).json();
          const seen = performance.getEntriesByType('resource').filter(e => e.name.endsWith(path));
          return seen[0].transferSize;
        }""",
        after,
    )
    return size / 1e3


@contextmanager
def service(folder: Path) -> Iterator[tuple[str, str]]:
    """Serve a campaign that has been played; yield the address and an analyst's token."""
    database = open_store(f"sqlite:///{folder}/aggregator.db", "aggregator")
    aggregator = Aggregator(database, key=bytes(32))
    fill(aggregator)
    token = aggregator.access.issue("analyst", "analyst")
    charts.specs()
    assets.load(assets.CHARTS)
    config = uvicorn.Config(create_app(aggregator), port=0, log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", token
    server.should_exit = True
    thread.join(30)


def fill(aggregator: Aggregator) -> None:
    """Store a campaign as it is after its rounds."""
    rng = np.random.default_rng(0)
    arms = [f"arm {arm}" for arm in range(N_ARMS)]
    campaign = Campaign(arms=arms, min_group_size=20, seats=N_USERS, policy="shoal")
    aggregator.directory.create(NAME, campaign)
    aggregator.directory.enrol(NAME, [f"user-{i}" for i in range(N_USERS)])
    means = rng.uniform(0.05, 0.3, N_ARMS)
    rounds: list[dict[str, Any]] = []
    summaries: list[dict[str, Any]] = []
    estimates: list[dict[str, Any]] = []
    for number in range(1, N_ROUNDS + 1):
        shares = rng.dirichlet(np.full(N_ARMS, 5.0) + np.arange(N_ARMS) * number / N_ROUNDS)
        plan = rng.choice(N_ARMS, N_USERS).astype(np.int32).tobytes() if number <= PLANS else None
        rounds.append({
            "campaign": NAME, "number": number, "state": "released", "plan_hash": "0" * 64,
            "arms": plan, "groups": plan, "wanted_at": number, "opened_at": number,
            "closed_at": number,
        })  # fmt: skip
        for arm, share in enumerate(shares):
            users = int(N_USERS * share)
            groups, reporters = users // 22, int(users * 0.95)
            rate = means[arm] * (1 + number / N_ROUNDS)
            summaries.append({
                "campaign": NAME, "number": number, "arm": arm, "users": users, "groups": groups,
                "smallest_group": 22, "totals": groups, "smallest_total": 20,
                "merged": int(rng.poisson(3)), "withheld": int(rng.poisson(0.3)),
                "homogeneous": int(rng.poisson(1)), "reporters": reporters,
                "total": int(1000 * rng.binomial(reporters, rate)),
            })  # fmt: skip
        told = np.clip([means + rng.normal(0, 0.01, N_ARMS), np.full(N_ARMS, 0.01)], 0, 1)
        packed = (1e6 * told).astype("<i4").tobytes()
        estimates.append({"campaign": NAME, "number": number, "millionths": packed})
    with aggregator.database.write() as connection:
        connection.execute(insert(store.rounds), rounds)
        connection.execute(insert(store.summaries), summaries)
        connection.execute(insert(store.estimates), estimates)
        # As after rounds that were really played: its first check is long past.
        checked = {"campaign": NAME, "ran_at": aggregator.clock(), "rounds": N_ROUNDS, "fault": ""}
        connection.execute(insert(store.checks), [{**checked, "rule": rule} for rule in RULES])
    aggregator.epochs.sync_learner({NAME: LearnerProgress(N_ROUNDS, N_ROUNDS)})


if __name__ == "__main__":
    main()
