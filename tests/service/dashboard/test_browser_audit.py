from __future__ import annotations

from playwright.sync_api import Browser
from tests.service.dashboard.test_browser import log_in, visit
from tests.support.live import Live

from shoal.service.aggregator import audit_log


def test_no_entry_of_the_audit_log_is_cut_off(browser: Browser, live: Live) -> None:
    with live.aggregator.database.write() as connection:
        audit_log.append(connection, "round.plan", campaign="taken", round=1, plan="e" * 64)
    with visit(browser, live.url, width=1200) as page:
        log_in(page, live, "admin")
        page.goto("/audit")
        table = page.locator("table")
        assert (
            table.evaluate("it => it.parentElement.scrollWidth - it.parentElement.clientWidth") == 0
        )
