"""Pictures of the dashboard for the documentation: ``make screenshots`` writes them.

Starts the service in a temporary folder, plays the readers of ``news.py`` against it until there is
something to see, and takes the pages in light, in dark and on a phone with Chromium.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from news import SECTIONS, tastes
from playwright.sync_api import Browser, Page

from shoal.cli.browser import open_browser
from shoal.client import Client
from shoal.service.embedded import Embedded, embedded

CAMPAIGN = "front-page"
MIN_GROUP_SIZE = 10
REPORTING = 0.9  # of the readers, in a round
HOLDOUT = 0.125  # of the readers, who see the best section so far
NOTE = "New layout of the front page"


def play(service: Embedded, n_users: int, n_rounds: int) -> None:
    """Play the rounds; the last one stays open."""
    rng = np.random.default_rng(1)
    readers = [f"reader-{i}" for i in range(n_users)]
    rates = tastes(n_users, rng)
    with (
        Client(service.url, service.tokens["operator"]) as operator,
        Client(service.url, service.tokens["app"]) as app,
    ):
        operator.create_campaign(
            CAMPAIGN, arms=SECTIONS, min_group_size=MIN_GROUP_SIZE, seats=n_users, policy="shoal",
            reward_steps=1, holdout=HOLDOUT,
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


def visit(browser: Browser, service: Embedded, *, dark: bool, width: int) -> Page:
    """Return a campaign's page with all charts drawn."""
    page = browser.new_context(
        base_url=service.url, color_scheme="dark" if dark else "light",
        viewport={"width": width, "height": 844}, device_scale_factor=2 if width < 600 else 1,
    ).new_page()  # fmt: skip
    page.goto(f"/login?next=/campaigns/{CAMPAIGN}")
    page.get_by_label("Token").fill(service.tokens["operator"])
    page.get_by_role("button", name="Log in").click()
    page.wait_for_selector("html[data-drawn]", state="attached")
    return page


def write_note(page: Page, number: int) -> None:
    """Write a note at a round, as an operator does."""
    page.get_by_label("Round", exact=True).fill(str(number))
    page.get_by_label("Note", exact=True).fill(NOTE)
    page.get_by_role("button", name="Add the note").click()
    page.get_by_text("The note was added").wait_for()


def point_at(page: Page, chart: str, share: float) -> None:
    """Show the values at some place of a chart."""
    plot = page.locator(f"[data-chart={chart}]")
    box = plot.bounding_box()
    assert box is not None
    plot.hover(position={"x": share * box["width"], "y": 80})


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=240)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with embedded() as service, open_browser() as browser:
        play(service, args.users, args.rounds)
        write_note(visit(browser, service, dark=False, width=1280), max(1, args.rounds // 2))
        for name, width in (("light", 1280), ("dark", 1280), ("phone", 390)):
            page = visit(browser, service, dark=name == "dark", width=width)
            if width > 600:
                point_at(page, "reward", 0.7)
            page.screenshot(path=args.out / f"dashboard-{name}.png", full_page=width > 600)
        page = visit(browser, service, dark=False, width=1280)
        shown = page.request.get(f"/v1/campaigns/{CAMPAIGN}/progress").json()
        page.goto(f"/campaigns/{CAMPAIGN}/anonymity")
        page.get_by_role("button", name="Check now").click()
        page.get_by_text("Every rule has been checked").wait_for()
        page.screenshot(path=args.out / "dashboard-anonymity.png", full_page=True)
    print("\n".join(sorted(str(file) for file in args.out.glob("dashboard-*.png"))))
    print("docs/service/dashboard.md says some of these figures, under Whose estimates:")
    columns = (shown["estimates"][name] for name in ("arm", "mean", "low", "high"))
    for arm, mean, low, high in zip(*columns, strict=True):
        print(f"  {arm}: {mean:.3f}, from {low:.3f} to {high:.3f}")
    print(f"  holdout, measured: {shown['lift']['reference']:.3f}")


if __name__ == "__main__":
    main()
