"""``shoal doctor``: whether everything is as it should be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click

from shoal.cli.options import json_option
from shoal.cli.serve import config_option, data_option, read_settings


@click.command(name="doctor")
@config_option
@data_option
@click.option(
    "--role",
    type=click.Choice(["both", "aggregator", "learner"]),
    default="both",
    show_default=True,
    help="Which role's settings and store to check.",
)
@json_option
def command(
    config: Path | None,
    data: Path | None,
    role: Literal["both", "aggregator", "learner"],
    as_json: bool,
) -> None:
    """Check the service's settings, stores and clocks, and every stored plan and release.

    Exit code 0 means that nothing was found, 1 that something was.
    """
    settings = read_settings(config, data)
    from shoal.service.doctor import Finding, examine

    found: list[Finding] = []
    if role != "learner":
        found += examine(settings, "aggregator")
    if role != "aggregator":
        found += examine(settings, "learner")
    faults = [finding for finding in found if finding.fault]
    if as_json:
        click.echo(json.dumps([{"check": f.check, "fault": f.fault} for f in found]))
    else:
        for finding in found:
            click.echo(f"{'FAULT' if finding.fault else 'ok':5} {finding.check}")
            if finding.fault:
                click.echo(f"      {finding.fault}")
        click.echo(f"{len(found)} checks, {len(faults)} fault{'s' * (len(faults) != 1)}")
    if faults:
        raise SystemExit(1)
