"""The documentation as people read it: without a network, without a mouse, in the dark.

The site is the one that ``make pages`` has built, which ``make test`` does before the tests.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, expect
from tests.support.pages import ROOT, blocks

SITE = ROOT / "build" / "site"
LOADED = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*?\b(?:src|href)=\"([^\"]+)\"")
NO_TRANSITIONS = """
addEventListener("DOMContentLoaded", () => {
  const style = document.createElement("style");
  style.textContent = "* { transition: none !important }";
  document.head.append(style);
});
"""
"""A colour on its way from light to dark has a contrast that nobody sees."""
EXAMINED = [
    "index.html",
    "faq.html",
    "tutorials/first-steps.html",
    "reference/api/shoal.model.Plan.html",
]


@pytest.fixture(scope="module")
def site() -> Path:
    if not (SITE / "index.html").is_file():
        needed = "the site is built by make pages"
        if "CI" in os.environ or "MAKELEVEL" in os.environ:
            pytest.fail(needed)
        pytest.skip(needed)
    return SITE


@pytest.fixture
def page(browser: Browser, site: Path) -> Iterator[Page]:
    """Open pages from the disk, and fail when one asks for anything else."""
    elsewhere: list[str] = []

    def record(request: Request) -> None:
        if not request.url.startswith(("file:", "data:")):
            elsewhere.append(request.url)

    with browser.new_context(offline=True) as context:
        context.add_init_script(NO_TRANSITIONS)
        opened = context.new_page()
        opened.on("request", record)
        yield opened
    assert elsewhere == []


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = [*site.rglob("*.html")]
    assert len(pages) > 100
    for file in pages:
        loaded = LOADED.findall(file.read_text(encoding="utf-8"))
        assert not [address for address in loaded if "//" in address], file


def test_search_and_links_work_from_the_disk(page: Page, site: Path) -> None:
    page.goto(f"{site.as_uri()}/search.html?q=decomposition")
    results = page.locator("#search-results li a")
    expect(results.first).to_be_visible()
    assert results.count() > 5
    page.goto(f"{site.as_uri()}/architecture.html")
    page.get_by_role("link", name="Feedback", exact=True).first.click()
    expect(page.locator("h1")).to_contain_text("Feedback")
    page.goto(f"{site.as_uri()}/theory.html")
    assert page.locator("math").count() > 1_000
    width = page.locator("div.formula math").first.evaluate(
        "box => box.getBoundingClientRect().width"
    )
    assert width > 200  # drawn, and not as text of its source


def test_axe_finds_nothing_serious_in_light_and_dark(page: Page, site: Path) -> None:
    serious: list[str] = []
    contrast = {"runOnly": ["color-contrast"]}  # all else is the same in the dark
    for path in EXAMINED:
        page.emulate_media(color_scheme="light")
        page.goto(f"{site.as_uri()}/{path}")
        for scheme, options in (("light", {}), ("dark", contrast)):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            expect(page.locator("html")).to_have_attribute("data-theme", scheme)
            result = Axe().run(page, options={"resultTypes": ["violations"], **options})
            for fault in result.response["violations"]:
                if fault["impact"] in {"serious", "critical"}:
                    nodes = "; ".join(str(node["target"]) for node in fault["nodes"][:3])
                    serious.append(f"{path} {scheme}: {fault['id']} {nodes}")
    assert serious == []


def test_a_tutorials_notebook_has_the_code_that_the_page_runs(site: Path) -> None:
    tutorials = sorted((ROOT / "docs/tutorials").glob("*.md"))
    assert tutorials
    for file in [*tutorials, ROOT / "docs/gallery.md"]:
        notebook = json.loads((site / f"notebooks/{file.stem}.ipynb").read_text(encoding="utf-8"))
        code = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
        runs = list(blocks(file.read_text(encoding="utf-8")))
        shown = [block.body.strip() for block in runs if block.language == "python"]
        if any(source.startswith("!") for source in code):
            assert 'environ["TERM"] = "dumb"' in code.pop(0)
        assert [source for source in code if not source.startswith("!")] == shown


def test_a_notebook_has_links_to_the_site_and_nothing_that_only_the_site_can_show(
    site: Path,
) -> None:
    for file in (site / "notebooks").glob("*.ipynb"):
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        prose = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
        assert ":::" not in prose, file
        assert "![" not in prose, file
        for path, _, anchor in re.findall(r"\]\((?!http)([^)#]+)(#([^)]+))?\)", prose):
            page = (file.parent / path).read_text(encoding="utf-8")
            assert not anchor or f'id="{anchor}"' in page, f"{file} links to {path}#{anchor}"
