"""Names that options accept, shown in their help and completed by the shell.

They are repeated here, and compared with the library's own by a test: to load the library would
take longer than anyone waits for a completion.
"""

import click
from click.shell_completion import CompletionItem

CHOICES = {
    "engine": ("local", "ray"),
    "instance": ("uniform", "linear", "clustered"),
    "method": (
        "euler", "home-away", "optimal", "lp", "blocks", "greedy", "greedy-printed", "random",
    ),
    "policy": (
        "elimination-greedy", "elimination-greedy-printed", "elimination-random", "elimination-lp",
        "elimination-blocks", "elimination-euler", "elimination-home-away", "elimination-optimal",
        "pooled-elimination", "pooled-explore-then-commit", "pooled-thompson", "shoal",
        "explore-then-commit", "ucb", "thompson", "random", "best-arm",
    ),
    "rewards": ("bernoulli", "gaussian", "bounded", "deterministic"),
    "role": ("admin", "operator", "app", "analyst", "learner", "monitor"),
    "scale": ("percent", "range", "p99", "positive"),
}  # fmt: skip
"""The names by kind, in the library's order."""

MAX_LISTED = 8
"""More names than these are not listed in the help."""


class NameChoice(click.types.StringParamType):
    """A name of a kind, or several with commas between; what is unknown the library refuses.

    Its error names the nearest known name, which ``click.Choice`` would not.
    """

    def __init__(self, kind: str, *, many: bool = False) -> None:
        self._kind, self._many = kind, many

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Show the names in the help, where they are few."""
        names = CHOICES[self._kind]
        if len(names) > MAX_LISTED:
            return None
        return f"[{'|'.join(names)}]" + (",..." if self._many else "")

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the last name."""
        before, comma, last = incomplete.rpartition(",") if self._many else ("", "", incomplete)
        names = [name for name in known_names(self._kind) if name.startswith(last)]
        return [CompletionItem(f"{before}{comma}{name}") for name in names]


def known_names(kind: str) -> list[str]:
    """Return the names of a kind, with the policies that other distributions bring."""
    names = list(CHOICES[kind])
    if kind == "policy":
        from importlib.metadata import entry_points

        names += [entry.name for entry in entry_points(group="shoal.policies")]
    return names
