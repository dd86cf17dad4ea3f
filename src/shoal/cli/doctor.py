"""``shoal doctor``: whether everything is as it should be."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import click

from shoal.cli import options
from shoal.cli.serve import with_settings

if TYPE_CHECKING:
    from shoal.service.settings import Settings


@click.command(name="doctor")
@with_settings
@click.option(
    "--role",
    type=click.Choice(["both", "aggregator", "learner"]),
    default="both",
    help="Which role's settings and store to check.",
)
@options.as_json
def command(
    settings: Settings, role: Literal["both", "aggregator", "learner"], as_json: bool
) -> None:
    """Check the service's settings, stores and clocks, and every stored plan and release.

    Exit code 0 means that no check failed, 1 that at least one did.
    """
    from shoal.service.doctor import examine

    findings = [*examine(settings, "aggregator")] if role != "learner" else []
    if role != "aggregator":
        findings += examine(settings, "learner")
    n_faults = sum(bool(finding.fault) for finding in findings)
    if as_json:
        click.echo(json.dumps([{"check": f.check, "fault": f.fault} for f in findings]))
    else:
        for finding in findings:
            click.echo(f"{'FAULT' if finding.fault else 'ok':5} {finding.check}")
            if finding.fault:
                click.echo(f"      {finding.fault}")
        click.echo(f"{len(findings)} checks, {n_faults} fault{'s' * (n_faults != 1)}")
    if n_faults:
        raise SystemExit(1)
