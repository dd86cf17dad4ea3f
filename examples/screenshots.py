"""Pictures of the dashboard for the documentation: ``make screenshots`` writes them.

Starts ``shoal serve`` in a temporary folder, plays the readers of ``news.py`` against it until
there is something to see, and takes the pages in light, in dark and on a phone with Chromium.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from news import SECTIONS, tastes
from playwright.sync_api import Browser, Page, sync_playwright

from shoal.client import Client

CAMPAIGN = "front-page"
LEAST = 10
REPORTING = 0.9  # of the readers, in a round
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars",
]  # fmt: skip


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@contextmanager
def service(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Run ``shoal serve``; yield its address and its tokens by role."""
    port = free_port()
    environment = os.environ | {
        "SHOAL_DATA": str(folder / "data"), "SHOAL_AGGREGATOR_PORT": str(port),
        "SHOAL_LEARNER_PORT": str(free_port()),
    }  # fmt: skip
    with (folder / "log").open("wb") as log:
        tree = subprocess.Popen(
            [sys.executable, "-m", "shoal.cli", "serve"],
            env=environment, stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
    assert tree.stdout is not None
    try:
        lines = [tree.stdout.readline().decode().split() for _ in range(3)]
        yield f"http://127.0.0.1:{port}", {line[0]: line[1] for line in lines}
    finally:
        tree.terminate()
        tree.wait(60)
        tree.stdout.close()


def play(url: str, tokens: dict[str, str], n_users: int, n_rounds: int) -> None:
    """Play the rounds; the last one stays open."""
    rng = np.random.default_rng(1)
    readers = [f"reader-{i}" for i in range(n_users)]
    rates = tastes(n_users, rng)
    with Client(url, tokens["operator"]) as operator, Client(url, tokens["app"]) as app:
        operator.create_campaign(
            CAMPAIGN, arms=SECTIONS, min_group_size=LEAST, seats=n_users, policy="shoal",
            reward_steps=1,
        )  # fmt: skip
        operator.enrol(CAMPAIGN, readers)
        for number in range(1, n_rounds + 1):
            while operator.open_round(CAMPAIGN, number).state == "wanted":
                pass
            if number == n_rounds:
                break
            shown = app.assignments(CAMPAIGN, number=number)
            sections = np.array([SECTIONS.index(shown[reader]) for reader in readers])
            clicks = rng.random(n_users) < rates[np.arange(n_users), sections]
            reports = rng.random(n_users) < REPORTING
            rewards = {readers[i]: float(clicks[i]) for i in np.flatnonzero(reports)}
            app.report(CAMPAIGN, number, rewards)
            operator.close_round(CAMPAIGN, number)


def visit(browser: Browser, url: str, token: str, *, scheme: str, width: int) -> Page:
    """Return a campaign's page with all charts drawn."""
    page = browser.new_context(
        base_url=url, color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": 844}, device_scale_factor=2 if width < 600 else 1,
    ).new_page()  # fmt: skip
    page.goto(f"/login?next=/campaigns/{CAMPAIGN}")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_selector("html[data-drawn]", state="attached")
    return page


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=240)
    args = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("the pictures need Chromium; install it: sudo apt-get install chromium")
    args.out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, service(Path(folder)) as (url, tokens):
        play(url, tokens, args.users, args.rounds)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
            for name, scheme, width in (
                ("light", "light", 1280),
                ("dark", "dark", 1280),
                ("phone", "light", 390),
            ):
                page = visit(browser, url, tokens["operator"], scheme=scheme, width=width)
                page.screenshot(path=args.out / f"dashboard-{name}.png", full_page=width > 600)
                if name == "light":
                    page.goto(f"/campaigns/{CAMPAIGN}/anonymity")
                    page.get_by_role("button", name="Check now").click()
                    page.get_by_text("Every rule has been checked").wait_for()
                    page.screenshot(path=args.out / "dashboard-anonymity.png", full_page=True)
            browser.close()
    print("\n".join(sorted(str(file) for file in args.out.glob("dashboard-*.png"))))


if __name__ == "__main__":
    main()
