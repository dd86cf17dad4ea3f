"""The paper says what was measured: its numbers are those of the pages and records."""

from __future__ import annotations

import re

import pytest
import typst
from benchmarks.manuscript import BUILD, NUMBERS, PAPER, as_text, collect, compile_paper
from benchmarks.manuscript_figures import draw_figures
from benchmarks.report import PAGES, ROOT


def test_numbers_are_those_of_pages_and_records() -> None:
    stored = NUMBERS.read_text(encoding="utf-8")
    assert stored == as_text(collect()), "run `make paper` and commit paper/numbers.json"


def test_no_result_is_typed_by_hand() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in PAGES.glob("*.md"))
    known = set(re.findall(r"\d[\d,.]*\d", pages))
    text = (PAPER / "experiments.typ").read_text(encoding="utf-8")
    text = re.sub(r"\d+%|[\d.]+(pt|cm)|\.at\(\d+\)|10\^\d+", "", text)  # layout, indices, powers
    typed = set(re.findall(r"\d[\d,.]*\d", text))
    assert typed <= known, "settings may be typed as their page has them, results may not"


def test_every_reference_is_cited() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in PAPER.glob("*.typ"))
    entries = re.findall(r"^(\w+):$", (PAPER / "references.yml").read_text("utf-8"), re.MULTILINE)
    assert entries
    assert [name for name in entries if not re.search(rf"@{name}\b", sources)] == []


@pytest.fixture(scope="module")
def figures() -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    draw_figures(collect(), BUILD)


@pytest.mark.slow
@pytest.mark.usefixtures("figures")
def test_it_compiles_to_eight_pages_and_an_appendix(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    pdf = tmp_path_factory.mktemp("paper") / "paper.pdf"
    compile_paper(pdf)
    assert pdf.read_bytes().startswith(b"%PDF")
    last = typst.query(
        str(PAPER / "main.typ"), "<last-page>", field="value", one=True, root=str(ROOT),
        ignore_system_fonts=True,
    )  # fmt: skip
    assert int(last) <= 8
