"""``shoal export``: what was released, as Parquet or CSV."""

from io import BytesIO
from pathlib import Path

import click

from shoal.cli.remote import address_options, connect
from shoal.errors import InvalidInputError
from shoal.extras import need
from shoal.files import write_atomically


@click.command(name="export")
@click.argument("campaign")
@click.argument("out", type=click.Path(path_type=Path, dir_okay=False))
@address_options
def command(campaign: str, out: Path, url: str, tokens: Path | None) -> None:
    """Write the released totals of CAMPAIGN to OUT, a new .parquet or .csv file.

    SHOAL_TOKEN, or the first start's file of tokens, has an analyst's token.
    """
    need("service")
    import polars as pl

    from shoal.client import ServiceError

    if out.exists():
        raise InvalidInputError(f"out must be a new file; {out} exists.")
    if not out.parent.is_dir():
        raise InvalidInputError(f"out must be in a folder that exists; {out.parent} does not.")
    rows: list[tuple[int, str, int, float]] = []
    with connect({"url": url, "tokens": tokens}, "analyst") as client:
        for number in range(1, client.campaign(campaign)["round"] + 1):
            try:
                release = client.release(campaign, number)
            except ServiceError as error:
                if error.name in ("not-released", "round-abandoned", "unknown-round"):
                    continue
                raise
            rows += [
                (number, total.arm, total.reporters, total.total / release.reward_steps)
                for total in release.totals
            ]
    schema = {"round": pl.Int64, "arm": pl.String, "reporters": pl.Int64, "total": pl.Float64}
    table, content = pl.DataFrame(rows, schema=schema, orient="row"), BytesIO()
    write = table.write_csv if out.suffix == ".csv" else table.write_parquet
    write(content)
    write_atomically(out, content.getvalue(), overwrite=False)
    click.echo(f"{len(rows):,} totals of {campaign} are in {out}")
