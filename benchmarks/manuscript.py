"""The paper (paper/main.typ): its numbers from records and pages, its figures, and the PDF.

``collect`` reads every number that the paper shows from what the benchmarks wrote, into
paper/numbers.json; a test compares the two. ``python -m benchmarks.manuscript`` collects again,
draws the figures and compiles build/paper/paper.pdf, with the fonts of the compiler alone.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import PAGES, RECORDS, ROOT
from benchmarks.sentences import sentences
from shoal.experiments.statistics import mean_interval, ratio_interval

PAPER = ROOT / "paper"
NUMBERS = PAPER / "numbers.json"
BUILD = ROOT / "build" / "paper"
READ_PAGES = ("regret", "survey", "minorities", "price", "theory", "conditions")

Table = dict[str, Any]


def main() -> None:
    from benchmarks.manuscript_figures import draw_figures

    numbers = collect()
    NUMBERS.write_text(as_text(numbers), encoding="utf-8")
    BUILD.mkdir(parents=True, exist_ok=True)
    draw_figures(numbers, BUILD)
    compile_paper(BUILD / "paper.pdf")
    if "--png" in sys.argv:
        compile_paper(BUILD / "page-{p}.png", format="png", ppi=80)
    print(f"{BUILD / 'paper.pdf'}")


def compile_paper(output: Path, **options: Any) -> None:
    """Compile the paper with the compiler's own fonts."""
    import typst

    typst.compile(
        str(PAPER / "main.typ"), output=str(output), root=str(ROOT), ignore_system_fonts=True,
        **options,
    )  # fmt: skip


def as_text(numbers: dict[str, Any]) -> str:
    """Return the numbers as they are stored."""
    return json.dumps(numbers, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def collect() -> dict[str, Any]:
    """Return every number of the paper."""
    numbers: dict[str, Any] = {"pages": {name: tables(name) for name in READ_PAGES}}
    numbers["reproduction"] = _reproduction()
    numbers["slopes"] = json.loads((RECORDS / "slopes.json").read_text(encoding="utf-8"))
    numbers["facts"] = _facts(numbers["pages"])
    return numbers


def tables(name: str) -> list[Table]:
    """Return all tables of a page as text, empty where it was never written."""
    path = PAGES / f"{name}.md"
    if not path.exists():
        return []
    found: list[Table] = []
    columns: list[str] | None = None
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            columns = None
            continue
        cells = [cell.strip().replace("`", "") for cell in line.strip().strip("|").split(" | ")]
        if columns is None:
            columns = cells
            found.append({"columns": columns, "rows": []})
        elif not all(set(cell) <= set("-: ") for cell in cells):
            found[-1]["rows"].append([cell.strip() for cell in cells])
    return found


def mean_and_half(cell: str) -> tuple[float, float]:
    """Return the numbers of a cell like "5,731 ± 1,104".

    >>> mean_and_half("5,731 ± 1,104")
    (5731.0, 1104.0)
    """
    mean, half = (float(part.replace(",", "")) for part in cell.split("±"))
    return mean, half


def _reproduction() -> dict[str, Any]:
    stored = json.loads((RECORDS / "reproduction.json").read_text(encoding="utf-8"))
    regrets = {
        (row["policy"], row["reading"], row["instance"]): np.array(row["regrets"])
        for row in stored["rows"]
    }
    rows: list[dict[str, Any]] = []
    for (policy, reading, instance), runs in regrets.items():
        interval = mean_interval(runs)
        rows.append(
            {
                "policy": policy, "reading": reading, "instance": instance, "runs": len(runs),
                "mean": round(interval.mean), "half": round(interval.half),
            }
        )  # fmt: skip
    checked = sentences(regrets, stored["clusters"], 4)
    ucb, thompson = (
        {name: regrets[policy, "sees every reward", name] for name in stored["clusters"]}
        for policy in ("ucb", "thompson")
    )
    return {
        "rows": rows,
        "sentences": checked,
        "holds": {
            verdict: sum(row[-1] == verdict for row in checked)
            for verdict in ("yes", "no", "undecided")
        },
        "ucb_of_thompson": {
            name: f"{ratio_interval(ucb[name], thompson[name]).mean:.1f}" for name in ucb
        },
    }


def _facts(pages: dict[str, list[Table]]) -> dict[str, str]:
    """Return single numbers that sentences of the paper name."""
    regret = {(row[0], row[1]): row[2] for row in pages["regret"][0]["rows"]}
    facts = {}
    for name in ("uniform", "linear"):
        instances = f"{name} N=50 K=5 C=4"
        own, ucb = (mean_and_half(regret[instances, policy])[0] for policy in ("shoal", "ucb"))
        facts[f"shoal_of_ucb_{name}"] = f"{own / ucb:.2f}"
    survey = pages["survey"][0]
    place = survey["columns"].index("shoal is best")
    wins = [[int(n) for n in re.findall(r"\d+", row[place])] for row in survey["rows"]]
    facts["survey_wins"] = str(sum(pair[0] for pair in wins))
    facts["survey_runs"] = str(sum(pair[1] for pair in wins))
    facts["survey_worst"] = max((row[place + 1] for row in survey["rows"]), key=float)
    text = (PAGES / "survey.md").read_text(encoding="utf-8")
    match = re.search(r"([\d.]+) times `thompson`'s .*?, ([\d.]+) at worst, .* in (\d+)\.", text)
    assert match, "docs/benchmarks/survey.md must compare all instances with thompson."
    names = ("survey_of_thompson", "survey_of_thompson_worst", "survey_above_c")
    facts |= dict(zip(names, match.groups(), strict=True))
    text = (PAGES / "theory.md").read_text(encoding="utf-8")
    match = re.search(r"R/D exceeds 2 − 1/K by ([\d.]+) at most", text)
    assert match, "docs/benchmarks/theory.md must say by how much R/D exceeds 2 − 1/K."
    facts["home_away_excess"] = match[1]
    return facts


if __name__ == "__main__":
    main()
