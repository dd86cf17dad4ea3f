"""Chromium, without anything that it would fetch by itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from tests.support.visits import SECONDS

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip


@contextmanager
def chromium() -> Iterator[Browser]:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        needed = "the pages are tested in Chromium; install it: sudo apt-get install chromium"
        if "CI" in os.environ or "MAKELEVEL" in os.environ:
            pytest.fail(needed)
        pytest.skip(needed)
    expect.set_options(timeout=SECONDS)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield opened
        opened.close()
