"""A picture of a page of the service, taken by the browser of this machine."""

from __future__ import annotations

import shutil
from pathlib import Path

from shoal.errors import ShoalError

MILLISECONDS = 10_000  # that any one step may take
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = [
    "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--no-sandbox",  # it only ever sees this machine's pages
]  # fmt: skip


def take_picture(url: str, token: str, path: str, file: Path) -> None:
    """Log in at ``url`` with a token, go to ``path`` and keep what is seen there as a PNG file."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise ShoalError("a picture needs Chromium: sudo apt-get install chromium.")
    try:
        from playwright.sync_api import Error, sync_playwright
    except ModuleNotFoundError:
        raise ShoalError("a picture needs playwright: pip install playwright.") from None
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=found, args=OPTIONS)
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.set_default_timeout(MILLISECONDS)
            page.goto(f"{url}/login")
            page.fill("input[name=token]", token)
            page.press("input[name=token]", "Enter")
            page.wait_for_url(lambda address: "/login" not in address)
            page.goto(f"{url}{path}", wait_until="networkidle")
            page.screenshot(path=file, full_page=True)
            browser.close()
    except Error as error:
        raise ShoalError(
            f"the picture could not be taken: {error.message.splitlines()[0]}"
        ) from None
