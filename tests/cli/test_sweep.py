from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from click.testing import CliRunner, Result

from shoal.cli.main import main

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

GRID = """
policies = ["random", "best-arm", "explore-then-commit"]
instances = ["uniform", "linear"]
users = [8, 12]
arms = 3
min_group_size = 2
horizon = 50
runs = 2

[options.explore-then-commit]
exploration = [0.2, 0.5]
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sweep")
    (place / "grid.toml").write_text(GRID)
    done = run("sweep", place / "grid.toml", "--out", place / "out", "--workers", 1)
    assert done.exit_code == 0, done.output
    assert re.search(r"16 +0 +0 +16 +0", done.output)
    return place / "out"


def test_status_shows_counts_as_a_table_and_as_json(folder: Path) -> None:
    assert re.search(r"16 +0 +0 +0 +none", run("status", folder).output)
    found = json.loads(run("status", folder, "--json").stdout)
    assert (found["done"], found["at_work"], found["seconds_left"]) == (16, False, None)


def test_names_that_look_like_markup_are_shown_as_they_are(folder: Path, tmp_path: Path) -> None:
    odd = shutil.copytree(folder, tmp_path / "run[a]:x:")
    assert "run[a]:x:: 16 cells" in "".join(run("status", odd).output.split("\n"))
    assert run("report", odd).output == f"{odd / 'report.html'}\n"


def test_nothing_but_the_table_is_printed_where_nobody_watches(
    folder: Path, tmp_path: Path
) -> None:
    done = run("sweep", folder.parent / "grid.toml", "--out", folder, "--json")
    assert json.loads(done.stdout)["before"] == 16
    assert done.stderr == ""


def test_ctrl_c_while_a_command_loads_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "shoal.cli.main.import_module", lambda name: signal.raise_signal(signal.SIGINT)
    )
    done = run("sweep", "grid.toml", "--out", "out")
    assert (done.exit_code, done.output) == (130, "Stopped.\n")


def test_failed_cells_are_told_and_give_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(
        'policies = ["elimination-lp", "random"]\nusers = 4\nhorizon = 20\nruns = 1\narms = 2\n'
    )
    done = run("sweep", tmp_path / "grid.toml", "--out", tmp_path / "out", "--json", "--workers", 1)
    assert done.exit_code == 1
    assert json.loads(done.stdout)["failed"] == 1
    assert "1 of 2 cells failed" in done.stderr
    assert "elimination-lp" in run("status", tmp_path / "out").output
    failures = json.loads(run("status", tmp_path / "out", "--json").stdout)["failures"]
    assert "n_users must be greater than" in next(iter(failures.values()))["reason"]


@pytest.mark.parametrize("command", ["status", "report"])
def test_a_folder_without_results_is_refused(command: str, tmp_path: Path) -> None:
    done = run(command, tmp_path)
    assert done.exit_code == 2
    assert str(tmp_path) in done.stderr
    assert "must" in done.stderr


@contextmanager
def looking(browser: Browser, file: Path) -> Iterator[Page]:
    """Open a page on a phone; it may fetch nothing and complain of nothing."""
    page = browser.new_context(viewport={"width": 390, "height": 800}).new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url))
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    yield page
    assert said == [file.as_uri()]


def column(page: Page, number: int) -> list[str]:
    return page.locator(f"tbody tr td:nth-child({number})").all_inner_texts()


def test_a_sweeps_report_is_one_page_whose_tables_sort(folder: Path, browser: Browser) -> None:
    done = run("report", folder)
    assert done.exit_code == 0, done.output
    with looking(browser, folder / "report.html") as page:
        assert page.locator("figure svg").count() == 2 + 4
        labels = page.locator("figure svg").first.text_content() or ""
        assert "explore-then-commit exploration=0.5" in labels
        assert len(column(page, 1)) == 16
        heading = page.get_by_role("button", name="regret", exact=True)
        heading.click()
        up = [float(cell.replace(",", "")) for cell in column(page, 5)]
        assert up == sorted(up)
        heading.click()
        assert [float(cell.replace(",", "")) for cell in column(page, 5)] == up[::-1]
        page.get_by_role("button", name="policy").click()
        assert column(page, 1) == sorted(column(page, 1))
        page.locator("summary").click()
        assert '"exploration": [' in page.locator("pre").inner_text()
        assert "Shoal 0." in page.locator("footer").inner_text()


OUTSIDE = """svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter(text => {
    const own = text.getBoundingClientRect();
    return own.left < box.left || own.right > box.right || own.top < box.top;
  }).map(text => text.textContent);
}"""


def test_long_titles_and_labels_stay_within_their_figure(tmp_path: Path, browser: Browser) -> None:
    from shoal.figures.regret import regret_figure
    from shoal.figures.report import Section, report_page

    long = "pooled-elimination gamma=0.125 n_batches=10 regularisation=0.5"
    curves = pl.DataFrame(
        {"policy": [long, long], "round": [1, 9], "mean": [1.0, 9.0], "low": 1.0, "high": 9.0}
    )
    title = "instances: clustered, users: 10, arms: 2, least group C: 1, rounds T: 20"
    figures = [
        regret_figure(curves, title=title),
        regret_figure(curves.with_columns(policy=pl.lit("ucb")), title=title),
    ]
    file = tmp_path / "page.html"
    page = report_page("figures", [Section("", "", figures)], configuration={}, version="")
    file.write_text(page, "utf-8")
    with looking(browser, file) as shown:
        for figure in shown.locator("figure svg").all():
            assert figure.evaluate(OUTSIDE) == []
            assert title.replace(" ", "") in (figure.text_content() or "").replace(" ", "")
            assert figure.get_attribute("aria-label") == title


def test_a_comparison_is_reported_too_into_a_file_of_ones_own(
    tmp_path: Path, browser: Browser
) -> None:
    run(
        "compare", "--policies", "random,best-arm", "--users", 12, "--horizon", 50, "--runs", 2,
        "--workers", 1, "--out", tmp_path / "out",
    )  # fmt: skip
    done = run("report", tmp_path / "out", "--out", tmp_path / "new folder" / "page.html")
    assert done.exit_code == 2
    assert "out must lie in a folder that exists" in done.output
    target = tmp_path / "page.html"
    done = run("report", tmp_path / "out", "--out", target)
    assert done.exit_code == 0, done.output
    with looking(browser, target) as page:
        assert page.locator("figure svg").count() == 2
        headings = page.locator("h2").all_inner_texts()
    assert headings[:2] == ["uniform instances", "linear instances"]
    assert run("report", tmp_path / "out", "--out", target).exit_code == 2


@pytest.mark.slow
def test_names_in_a_report_can_not_be_markup(tmp_path: Path) -> None:
    from shoal.figures.report import Section, Table, report_page

    page = report_page(
        "<b>", [Section("<i>", "<u>", table=Table(["<s>"], [["<script>"]]))],
        configuration={"<em>": 1}, version="<q>",
    )  # fmt: skip
    assert not re.findall("<(?:b|i|u|s|em|q)>", page)
    assert page.count("<script>") == 1
