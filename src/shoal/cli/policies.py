"""``shoal policies``: the table of policies."""

import json

import click

from shoal.cli.options import json_option


@click.command(name="policies")
@json_option
def command(as_json: bool) -> None:
    """Show the policies, what each needs and what it guarantees.

    N users, K arms, groups of at least C, T rounds; every arm is the best one of at least U users;
    α = max(1, ceil(K(C+1)/U)). Guarantees hide constants and logarithms.
    """
    from shoal.cli import console
    from shoal.policies import POLICIES

    if as_json:
        click.echo(
            json.dumps(
                {
                    name: {
                        "summary": entry.summary,
                        "anonymous": entry.anonymous,
                        "needs": entry.needs,
                        "guarantee": entry.guarantee,
                        "options": entry.options(),
                    }
                    for name, entry in POLICIES.items()
                }
            )
        )
        return
    console.table(
        "Policies",
        ["name", "what it is", "needs", "regret"],
        [(name, e.summary, e.needs, e.guarantee) for name, e in POLICIES.items()],
    )
