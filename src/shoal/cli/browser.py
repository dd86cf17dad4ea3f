"""A picture of a campaign's page, by the browser of this machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shoal.errors import ShoalError

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from shoal.service.embedded import Embedded

STEP_MILLISECONDS = 10_000  # that any one step may take
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_OPTIONS = [
    "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--hide-scrollbars",
    "--no-sandbox",  # it only ever sees this machine's pages
]  # fmt: skip


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start the browser of this machine, or say what is missing for it."""
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        raise ShoalError("a picture needs Chromium: sudo apt-get install chromium.")
    try:
        from playwright.sync_api import Error, sync_playwright
    except ModuleNotFoundError:
        raise ShoalError("a picture needs playwright: pip install playwright.") from None
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=executable, args=BROWSER_OPTIONS)
            yield browser
            browser.close()
    except Error as error:
        reason = error.message.splitlines()[0]
        raise ShoalError(f"the picture could not be taken: {reason}") from None


def save_picture(service: Embedded, campaign: str, file: Path) -> None:
    """Log in as the analyst and save the campaign's page, or say what is missing for it."""
    message = f"Picture of the campaign's page: {file}"
    try:
        with open_browser() as browser:
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.set_default_timeout(STEP_MILLISECONDS)
            page.goto(f"{service.url}/login")
            page.fill("input[name=token]", service.tokens["analyst"])
            page.press("input[name=token]", "Enter")
            page.wait_for_url(lambda address: "/login" not in address)
            page.goto(f"{service.url}/campaigns/{campaign}", wait_until="networkidle")
            page.screenshot(path=file, full_page=True)
    except ShoalError as error:
        message = f"No picture: {error}"
    click.echo(message, err=True)
