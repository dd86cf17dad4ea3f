"""The pages as people use them: in Chromium, with scripts, in light and dark, on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect
from tests.support.live import Live, learning, serve
from tests.support.service import users
from tests.support.stores import Stores
from tests.support.visits import (
    ARMS,
    CAMPAIGN,
    N_USERS,
    SECONDS,
    Visitor,
    create,
    play,
    wait,
)

from shoal.service.audit import RULES

PLACE = f"/campaigns/{CAMPAIGN}"
PAGES = [
    "/", PLACE, f"{PLACE}/anonymity", f"{PLACE}/users", f"{PLACE}/arms", "/new-campaign", "/tokens",
    "/guide",
]  # fmt: skip
MARKUP = "</script><img src=x onerror=alert(1)>"


@contextmanager
def visit(
    browser: Browser, url: str, *, scheme: str = "light", width: int = 1280, noise: bool = False
) -> Iterator[Page]:
    """A page of a new visitor; whatever the console complains about is a failure."""
    context = browser.new_context(
        base_url=url, color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": 900},
    )  # fmt: skip
    context.set_default_timeout(SECONDS)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda m: said.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        yield page
        assert noise or said == []
    finally:
        context.close()


def log_in(page: Page, live: Live, role: str = "operator") -> None:
    page.goto("/")
    page.get_by_label("Token").fill(live.tokens[role])
    page.get_by_role("button", name="Log in").click()
    heading = "Tokens" if role == "admin" else "Campaigns"
    expect(page.get_by_role("heading", name=heading)).to_be_visible()


def wait_for_charts(page: Page, shown: int) -> None:
    page.wait_for_selector(f"html[data-drawn='{shown}']", state="attached")
    expect(page.locator(".plot svg")).to_have_count(5)


def path_of(page: Page, chart: str) -> str:
    return page.locator(f"[data-chart={chart}] svg").first.inner_html()


def test_a_wrong_token_is_told_and_no_token_is_ever_in_an_address(
    browser: Browser, played: Live
) -> None:
    with visit(browser, played.url, noise=True) as page:  # the console tells the refusal
        addresses: list[str] = []
        page.on("request", lambda request: addresses.append(request.url))
        page.goto(PLACE)
        page.get_by_label("Token").fill("shoal.operator.wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("not the token of an analyst")
        page.get_by_label("Token").fill(played.tokens["analyst"])
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name=CAMPAIGN)).to_be_visible()
        assert page.url.endswith(PLACE)
        assert not any("shoal." in address.split("/", 3)[3] for address in addresses
                       if "/static/" not in address)  # fmt: skip
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_a_campaign_is_made_enrolled_and_played_on_the_pages(
    browser: Browser, played: Live, tmp_path: Path
) -> None:
    file = tmp_path / "users.csv"
    file.write_text("user\n" + "".join(f"user-{i}\n" for i in range(40)))
    with visit(browser, played.url) as page:
        log_in(page, played)
        page.get_by_role("link", name="New campaign").first.click()
        page.get_by_label("Name", exact=True).fill("a name")
        expect(page.locator("#name-error")).to_contain_text("must be 1 to 64")
        page.get_by_label("Name", exact=True).fill("reminders")
        expect(page.locator("#name-error")).to_be_empty()
        page.get_by_label("Arms", exact=True).fill(f"morning\n{MARKUP}")
        page.get_by_label("Seats").fill("4")
        expect(page.locator("#min_group_size-error")).to_contain_text("at most the seats")
        expect(page.locator("#seats-error")).to_be_empty()
        page.get_by_label("Seats").fill("50")
        page.get_by_label("C, the minimum group size").fill("2")
        expect(page.locator("#min_group_size-error")).to_contain_text("floor")
        page.get_by_label("C, the minimum group size").fill("5")
        expect(page.locator("#min_group_size-error")).to_be_empty()
        page.get_by_label("Nothing in a campaign").check()
        page.get_by_role("button", name="Create the campaign").click()
        expect(page.get_by_text("No curves yet")).to_be_visible()
        page.get_by_role("link", name="Users").click()
        page.get_by_label("CSV file", exact=True).set_input_files(file)
        page.get_by_label("A user’s seat").check()
        page.get_by_role("button", name="Enrol").click()
        expect(page.get_by_role("status")).to_contain_text("40 users were enrolled")
        page.get_by_role("link", name="Curves").click()
        page.get_by_role("button", name="Open round 1").click()
        # The learner plans; the page hears of it by itself.
        expect(page.get_by_role("button", name="Close round 1")).to_be_visible()
        rewards = {f"user-{i}": float(i % 3 == 0) for i in range(40)}
        assert played.client("app").report("reminders", 1, rewards) == []
        page.get_by_role("button", name="Close round 1").click()
        page.get_by_role("button", name="Close and release").click()
        expect(page.get_by_role("button", name="Open round 2")).to_be_visible()
        wait(lambda: played.aggregator.releases.shown("reminders") == 1)
        wait_for_charts(page, 1)
        expect(page.locator("[data-chart=shares]")).to_contain_text(MARKUP[:11])  # as text
        # One round is no line and no area.
        expect(page.locator("[data-chart=reward] .mark-symbol.role-mark path")).not_to_have_count(0)
        expect(page.locator("[data-chart=sizes] .mark-symbol.role-mark path")).not_to_have_count(0)
        expect(page.locator("[data-chart=shares] .mark-rect.role-mark path")).to_have_count(2)
        assert page.locator("img").count() == 0


def test_curves_move_by_themselves(browser: Browser, played: Live) -> None:
    with visit(browser, played.url) as page:
        log_in(page, played, "analyst")
        page.goto(PLACE)
        shown = played.aggregator.releases.shown(CAMPAIGN)
        assert shown is not None
        wait_for_charts(page, shown)
        before = {chart: path_of(page, chart) for chart in ("reward", "shares", "sizes", "groups")}
        rows = page.locator("[data-table=reward] tr").count()
        play(played, shown + 1)
        wait_for_charts(page, shown + 1)
        for chart, drawn in before.items():
            assert path_of(page, chart) != drawn, chart
        expect(page.locator("[data-words=rounds]")).to_have_text(str(shown + 1))
        assert page.locator("[data-table=reward] tr").count() == rows + 1
        first = page.locator("[data-chart=reward] path[stroke-dasharray='2,3'][d*='L']")
        heights = re.findall(r",([\d.]+)", first.get_attribute("d") or "")
        assert len(heights) == shown + 1
        assert len(set(heights)) == 1  # the first rounds' reward is one, also in older rounds
        played.client("operator").open_round(CAMPAIGN, shown + 2)
        expect(page.locator("#state")).to_contain_text(f"Round {shown + 2}: open since")


def test_a_chart_tells_its_values_and_notes_and_can_be_saved(
    browser: Browser, played: Live
) -> None:
    with visit(browser, played.url) as page:
        log_in(page, played)
        page.goto(PLACE)
        page.get_by_label("Round", exact=True).fill("2")
        page.get_by_label("Note", exact=True).fill(f"New layout {MARKUP}")
        page.get_by_role("button", name="Add the note").click()
        expect(page.get_by_role("status").first).to_contain_text("The note was added")
        wait_for_charts(page, played.aggregator.releases.shown(CAMPAIGN) or 0)
        plot, tip = page.locator("[data-chart=reward]"), page.locator("#chart-reward .tip")
        plot.focus()
        for _ in range(2):
            page.keyboard.press("ArrowRight")
        expect(tip).to_contain_text(re.compile(r"Round 2\d+ \w+ \d{4}.*UTC.*reward0\.\d{3}"))
        expect(tip).to_contain_text(f"1: New layout {MARKUP}")
        page.keyboard.press("Escape")
        plot.hover()
        expect(tip).to_be_visible()
        with page.expect_download() as saved:
            page.get_by_role("button", name="Reward per round as PNG").click()
        assert saved.value.suggested_filename == f"{CAMPAIGN}-reward.png"
        assert saved.value.path().read_bytes().startswith(b"\x89PNG")
        page.get_by_role("button", name="Remove note 1").click()
        expect(page.locator("#notes")).to_contain_text("None yet")


def test_what_is_typed_before_the_script_has_come_is_checked_too(
    browser: Browser, played: Live
) -> None:
    with visit(browser, played.url) as page:
        log_in(page, played)
        held: list[Route] = []
        page.route(re.compile(r"/static/.*\.js"), lambda route: held.append(route))
        page.goto("/new-campaign", wait_until="commit")
        page.get_by_label("Name", exact=True).fill("a name")
        while not held:  # the script is on its way
            page.wait_for_timeout(10)
        held[0].continue_()
        expect(page.locator("#name-error")).to_contain_text("must be 1 to 64")
        expect(page.locator("#seats-error")).to_be_empty()  # nobody has been there yet


def test_a_late_answer_says_nothing_of_what_is_typed_since(browser: Browser, played: Live) -> None:
    with visit(browser, played.url) as page:
        log_in(page, played)
        page.goto("/new-campaign")
        held: list[Route] = []
        page.route(
            "**/new-campaign/check",
            lambda route: route.continue_() if held else held.append(route),
        )
        page.get_by_label("Name", exact=True).fill("a name")
        while not held:
            page.wait_for_timeout(10)
        with page.expect_response("**/new-campaign/check"):
            page.get_by_label("Name", exact=True).fill("nobody-has-this")
        with page.expect_response("**/new-campaign/check") as late:
            held[0].continue_()
        assert "must be 1 to 64" in late.value.json()["name"]
        page.wait_for_timeout(100)  # for the page to read it
        expect(page.locator("#name-error")).to_be_empty()


def test_a_refusal_stays_until_its_own_field_is_mended(browser: Browser, played: Live) -> None:
    with visit(browser, played.url, noise=True) as page:  # the console tells the refusal
        log_in(page, played)
        page.goto("/new-campaign")
        page.get_by_role("button", name="Create the campaign").click()
        page.get_by_label("Name", exact=True).fill("nobody-has-this")
        expect(page.locator("#name-error")).to_be_empty()
        expect(page.locator("#seats-error")).not_to_be_empty()
        page.get_by_label("Seats").fill("50")
        expect(page.locator("#seats-error")).to_be_empty()


def test_a_session_that_ends_takes_no_form_with_it(browser: Browser, played: Live) -> None:
    with visit(browser, played.url) as page:
        log_in(page, played)
        page.goto("/new-campaign")
        page.get_by_label("Name", exact=True).fill("long-typed")
        page.context.clear_cookies()
        page.get_by_role("button", name="Create the campaign").click()
        page.get_by_label("Token").fill(played.tokens["operator"])
        page.keyboard.press("Enter")
        expect(page.get_by_label("Name", exact=True)).to_have_value("long-typed")


def test_a_page_takes_in_new_arms_and_rounds_of_nobody_as_it_is(
    browser: Browser, tmp_path: Path
) -> None:
    stores = Stores(f"sqlite:///{tmp_path}/aggregator.db", f"sqlite:///{tmp_path}/learner.db")
    with serve(stores) as live, learning(live), visit(browser, live.url) as page:
        operator = live.client("operator")
        create(live, enrolled=False)
        log_in(page, live)
        page.goto(PLACE)
        page.evaluate("window.still = true")  # a page that loads itself again forgets this
        while operator.open_round(CAMPAIGN, 1).state == "wanted":
            pass
        close = page.get_by_role("button", name="Close round 1")
        close.focus()
        operator.close_round(CAMPAIGN, 1)
        expect(page.locator("[data-words=rounds]")).to_have_text("1")
        expect(page.locator("#empty")).to_be_visible()
        expect(page.locator("#charts")).to_be_hidden()
        expect(close).to_be_visible()  # nothing is taken from under anyone's fingers
        close.blur()
        expect(page.get_by_role("button", name="Open round 2")).to_be_visible()
        operator.enrol(CAMPAIGN, users(N_USERS))
        play(live, 2)
        wait_for_charts(page, 2)
        page.locator("#chart-shares summary").click()
        operator.add_arm(CAMPAIGN, "culture")
        play(live, 3)
        wait_for_charts(page, 3)
        heads = ["round", "released, UTC", *ARMS, "culture"]
        expect(page.locator("[data-head=shares] th")).to_have_text(heads)
        expect(page.locator("[data-table=shares] tr").first.locator("th, td")).to_have_count(6)
        expect(page.locator("#chart-shares table")).to_be_visible()
        assert page.evaluate("window.still")


def test_the_anonymity_page_tells_every_rule_and_when_it_was_checked(
    browser: Browser, played: Live
) -> None:
    with visit(browser, played.url) as page:
        log_in(page, played)
        page.goto(f"{PLACE}/anonymity")
        page.get_by_role("button", name="Check now").click()
        expect(page.get_by_role("status")).to_contain_text("Every rule has been checked")
        expect(page.get_by_text("holds", exact=True)).to_have_count(len(RULES))
        expect(page.get_by_text("broken", exact=True)).to_have_count(0)
        expect(
            page.get_by_text(re.compile(r"rounds, \d+ \w+ \d{4}, \d\d:\d\d:\d\d UTC"))
        ).to_have_count(len(RULES))
        facts = page.locator(".facts").first.inner_text()
        assert re.search(r"Smallest total ever, in reporters\s+([5-9]|\d\d)\n", facts)


def test_axe_finds_nothing_serious_in_light_and_dark(browser: Browser, played: Live) -> None:
    found: list[str] = []
    contrast = {"runOnly": ["color-contrast"]}  # all else is the same in the dark

    def examine(page: Page) -> None:
        for scheme, options in (("light", {}), ("dark", contrast)):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            result = Axe().run(page, options={"resultTypes": ["violations"], **options})
            for fault in result.response["violations"]:
                nodes = "; ".join(str(node["target"]) for node in fault["nodes"][:3])
                found.append(f"{page.url} {scheme}: {fault['impact']} {fault['id']} {nodes}")

    with visit(browser, played.url) as page:
        page.goto("/login")
        examine(page)
        log_in(page, played)
        for path in PAGES:
            page.emulate_media(color_scheme="light")
            page.goto(path)
            if path == PLACE:
                wait_for_charts(page, played.aggregator.releases.shown(CAMPAIGN) or 0)
                for summary in page.locator("summary").all():
                    summary.click()
            examine(page)
    with visit(browser, played.url) as page:
        log_in(page, played, "admin")
        for path in ("/audit", "/tokens"):
            page.goto(path)
            examine(page)
        last_used = page.get_by_role("row", name="app app all").get_by_role("cell").nth(4)
        expect(last_used).to_have_text(re.compile(r"^\d+ \w+ \d{4}$"))
        page.get_by_role("button", name="Revoke app").click()
        examine(page)
    assert found == []


def test_dark_is_dark_and_the_charts_follow(browser: Browser, played: Live) -> None:
    with visit(browser, played.url, scheme="dark") as page:
        log_in(page, played)
        page.goto(PLACE)
        shown = played.aggregator.releases.shown(CAMPAIGN) or 0
        wait_for_charts(page, shown)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 25, 27)"
        lines = page.locator("[data-chart=estimates] svg [stroke='#3fbfb5']")
        expect(lines).to_have_count(3)
        page.emulate_media(color_scheme="light")
        expect(lines).to_have_count(0)
        expect(page.locator("[data-chart=estimates] svg [stroke='#0b7a75']")).to_have_count(3)


def test_everything_fits_a_phone_and_can_be_reached_by_keyboard(
    browser: Browser, played: Live
) -> None:
    with visit(browser, played.url, width=360) as page:
        log_in(page, played)
        for path in PAGES:
            page.goto(path)
            if path == PLACE:
                wait_for_charts(page, played.aggregator.releases.shown(CAMPAIGN) or 0)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 360, path
        page.goto("/")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"


def test_a_lost_connection_is_told_and_recovered_from(browser: Browser, tmp_path: Path) -> None:
    stores = Stores(f"sqlite:///{tmp_path}/aggregator.db", f"sqlite:///{tmp_path}/learner.db")
    with visit(browser, "", noise=True) as page:  # the console tells failed requests
        with serve(stores) as live, learning(live):
            create(live)
            play(live, 1)
            page.goto(f"{live.url}/login")
            page.get_by_label("Token").fill(live.tokens["operator"])
            page.get_by_role("button", name="Log in").click()
            page.goto(f"{live.url}{PLACE}")
            wait_for_charts(page, 1)
            port = int(live.url.rsplit(":", 1)[1])
        expect(page.get_by_role("alert")).to_contain_text("The connection is lost")
        with serve(stores, port=port, tokens=live.tokens) as again:
            expect(page.locator("#lost")).to_be_hidden()  # the session has outlived the process
            expect(page.locator("#unheard")).to_be_visible()
            expect(page.locator("[data-words=rounds]")).to_have_text("1")
            expect(page.locator(".plot svg")).to_have_count(5)
            with Visitor(again, "analyst") as analyst:
                assert "Totals released</dt><dd>–" in analyst.http.get(f"{PLACE}/anonymity").text
                assert 'id="empty" hidden' in analyst.http.get(PLACE).text
            with learning(again):
                play(again, 2)
                wait_for_charts(page, 2)
                expect(page.locator("#unheard")).to_be_hidden()
                again.aggregator.access.revoke("operator")
                expect(page.get_by_role("link", name="Log in again")).to_be_visible()
