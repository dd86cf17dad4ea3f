"""``shoal report``: a sweep or a comparison as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from shoal.figures.report import Section

MOST_FIGURES = 24


@click.command(name="report")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A new file for the page; by default report.html in FOLDER, written anew each time.",
)
def command(folder: Path, out: Path | None) -> None:
    """Write one HTML page with the figures and tables of FOLDER, to look at or to mail.

    FOLDER is that of "shoal sweep", done or not, or of "shoal compare --out". The page holds all
    it needs and fetches nothing; a click on a column sorts by it.
    """
    from shoal import __version__
    from shoal.cli import console
    from shoal.experiments.records import check_new
    from shoal.experiments.sweep.folder import SweepFolder, write_atomically
    from shoal.figures.report import report_page

    if out:
        check_new(out, "file")
    is_sweep = (folder / "sweep.json").is_file()
    with console.waiting("drawing"):
        if is_sweep:
            title, sections = _sweep(folder)
            configuration = SweepFolder(folder).configuration()
        else:
            title, sections, configuration = _comparison(folder)
        page = report_page(
            title,
            sections,
            configuration=configuration,
            version=f"Played by Shoal {configuration['shoal']}, written by Shoal {__version__}.",
        )
    target = out or folder / "report.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, page.encode())
    console.out.print(f"{target}", highlight=False, soft_wrap=True)


def _comparison(folder: Path) -> tuple[str, list[Section], dict[str, object]]:
    from shoal.experiments.records import Comparison
    from shoal.figures.regret import regret_figures
    from shoal.figures.report import Section, Table

    found = Comparison.read(folder)
    config = dict(found.config)
    figures = regret_figures(found.curves())
    sections = [
        Section(
            f"{name} instances",
            "Mean regret of all users over the runs, with its 95 % band.",
            [figures[str(name)]],
            Table(
                ["policy", "regret", "± 95 %", "smallest group", "withheld", "seconds"],
                [
                    (
                        row["policy"],
                        row["mean"],
                        None if row["high"] is None else row["high"] - row["mean"],
                        row["smallest_group"],
                        row["withheld"],
                        row["seconds"],
                    )
                    for row in rows.sort("mean").to_dicts()
                ],
            ),
        )
        for (name,), rows in found.summary().group_by("instance", maintain_order=True)
    ]
    title = (
        f"{len(config['policies'])} policies, {config['n_users']:,} users, "
        f"{config['n_arms']} arms, groups of at least {config['min_group_size']}, "
        f"{config['horizon']:,} rounds"
    )
    return title, sections, config


def _sweep(folder: Path) -> tuple[str, list[Section]]:
    from shoal.experiments.sweep import read_sweep, status
    from shoal.experiments.sweep.results import curves, summarise
    from shoal.figures.regret import regret_figure
    from shoal.figures.report import Section, Table
    from shoal.figures.sweep import SETTING, parts, settings_figures, varied, with_labels

    records = read_sweep(folder)
    summary = with_labels(summarise(records))
    names = varied(summary)
    figures = list(settings_figures(summary).values())
    lines = parts(with_labels(curves(records)), names)
    over_time = [
        regret_figure(part.select("round", "mean", "low", "high", policy="label"), title=title)
        for title, part in lines[:MOST_FIGURES]
    ]
    state = status(folder)
    fixed = {name: summary[name][0] for name in SETTING if name not in names}
    told = ", ".join(f"{SETTING[name]} {value}" for name, value in fixed.items())
    sections = [
        Section(
            "What was varied",
            f"The same for all: {told}." + _more(figures),
            figures[:MOST_FIGURES],
        ),
        Section(
            "Every setting",
            f"{state.done:,} of {state.total:,} cells are done, {state.failed:,} failed. "
            "Regret is the mean total over runs, with its 95 % interval.",
            table=Table(
                [
                    "policy",
                    *(SETTING[name] for name in names),
                    "runs",
                    "regret",
                    "± 95 %",
                    "per user and round",
                    "smallest group",
                    "withheld",
                    "seconds",
                ],
                [
                    (
                        row["label"],
                        *(row[name] for name in names),
                        row["runs"],
                        row["mean"],
                        None if row["high"] is None else row["high"] - row["mean"],
                        row["mean"] / (row["n_users"] * row["horizon"]),
                        row["smallest_group"],
                        row["withheld"],
                        row["seconds"],
                    )
                    for row in summary.to_dicts()
                ],
            ),
        ),
        Section(
            "Regret over time",
            "Mean regret of all users over the runs, with its 95 % band." + _more(lines),
            over_time,
        ),
    ]
    return f"Sweep {folder.resolve().name}", sections


def _more(figures: Sequence[object]) -> str:
    left = len(figures) - MOST_FIGURES
    return f" {left} more are not drawn; the records have them." if left > 0 else ""
