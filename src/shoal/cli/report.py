"""``shoal report``: a sweep or a comparison as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shoal.cli import console, options

if TYPE_CHECKING:
    from polars import DataFrame

    from shoal.figures.report import Section, Table

MAX_FIGURES = 24
BAND = "Mean regret of all users over the runs, with its 95 % band."
REGRET = {"regret": "mean", "± 95 %": "half"}
COST = {"smallest group": "smallest_group", "withheld": "withheld", "seconds": "seconds"}


@click.command(name="report")
@click.argument("folder", type=click.Path(path_type=Path))
@options.out(
    "file", "A new file for the page; by default report.html in FOLDER, which is overwritten."
)
def command(folder: Path, out: Path | None) -> None:
    """Write one HTML page with the figures and tables of FOLDER, to look at or to mail.

    FOLDER is that of "shoal sweep", done or not, or of "shoal compare --out". The page holds all
    it needs and fetches nothing; a click on a column sorts by it.
    """
    from shoal import __version__
    from shoal.experiments.sweep.folder import write_result
    from shoal.figures.report import report_page

    with console.waiting("drawing"):
        read = _sweep if (folder / "sweep.json").is_file() else _comparison
        title, sections, configuration = read(folder)
        page = report_page(
            title,
            sections,
            configuration=configuration,
            version=f"Played by Shoal {configuration['shoal']}, written by Shoal {__version__}.",
        )
    target = out or folder / "report.html"
    write_result(target, page.encode())
    click.echo(target)


def _comparison(folder: Path) -> tuple[str, list[Section], dict[str, Any]]:
    from shoal.experiments.comparison import Comparison
    from shoal.figures.regret import regret_figures
    from shoal.figures.report import Section

    comparison = Comparison.read(folder)
    config = dict(comparison.config)
    figures = regret_figures(comparison.curves(), records=comparison.records)
    sections = [
        Section(
            f"{name} instances",
            BAND,
            [figures[str(name)]],
            _table(rows.sort("mean"), {"policy": "policy", **REGRET, **COST}),
        )
        for (name,), rows in comparison.summary().group_by("instance", maintain_order=True)
    ]
    title = (
        f"{len(config['policies'])} policies, {config['n_users']:,} users, "
        f"{config['n_arms']} arms, groups of at least {config['min_group_size']}, "
        f"{config['horizon']:,} rounds"
    )
    return title, sections, config


def _sweep(folder: Path) -> tuple[str, list[Section], dict[str, Any]]:
    import polars as pl

    from shoal.experiments.sweep import read_sweep, status
    from shoal.experiments.sweep.folder import SweepFolder
    from shoal.experiments.sweep.results import curves, summarise
    from shoal.figures.regret import regret_figure
    from shoal.figures.report import Section
    from shoal.figures.sweep import SETTING, parts, settings_figures, varied, with_labels

    records = read_sweep(folder)
    per_round = pl.col("mean") / (pl.col("n_users") * pl.col("horizon"))
    summary = with_labels(summarise(records)).with_columns(per_round=per_round)
    names = varied(summary)
    figures = list(settings_figures(summary).values())
    lines = parts(with_labels(curves(records)), names)
    over_time = [
        regret_figure(part.select("round", "mean", "low", "high", policy="label"), title=title)
        for title, part in lines[:MAX_FIGURES]
    ]
    state = status(folder)
    fixed = ", ".join(f"{SETTING[n]} {summary[n][0]}" for n in SETTING if n not in names)
    columns = {"policy": "label", **{SETTING[name]: name for name in names}, "runs": "runs"}
    columns |= {**REGRET, "per user and round": "per_round", **COST}
    sections = [
        Section(
            "What was varied",
            f"The same for all: {fixed}." + _more(figures),
            figures[:MAX_FIGURES],
        ),
        Section(
            "Every setting",
            f"{state.done:,} of {state.total:,} cells are done, {state.failed:,} failed. "
            "Regret is the mean total over runs, with its 95 % interval.",
            table=_table(summary, columns),
        ),
        Section("Regret over time", BAND + _more(lines), over_time),
    ]
    return f"Sweep {folder.resolve().name}", sections, SweepFolder(folder).configuration()


def _table(summary: DataFrame, columns: dict[str, str]) -> Table:
    """Return a table of the summary's columns by heading."""
    from shoal.figures.report import Table

    rows = summary.with_columns(half=summary["high"] - summary["mean"])
    return Table(list(columns), rows.select(columns.values()).rows())


def _more(figures: Sequence[object]) -> str:
    left = len(figures) - MAX_FIGURES
    return f" {left} more are not drawn; the records have them." if left > 0 else ""
