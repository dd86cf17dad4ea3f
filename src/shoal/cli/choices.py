"""Names that options accept, shown in their help and completed by the shell.

They are repeated here, and compared with the library's own by a test: to load the library would
take longer than anyone waits for a completion.
"""

from collections.abc import Callable, Sequence

import click
from click.shell_completion import CompletionItem

INSTANCES = ("uniform", "linear", "clustered")
REWARDS = ("bernoulli", "gaussian", "bounded", "deterministic")
ENGINES = ("local", "ray")
SCALES = ("percent", "range", "p99", "positive")
METHODS = (
    "euler", "home-away", "optimal", "lp", "blocks", "greedy", "greedy-printed", "random",
)  # fmt: skip
POLICIES = (
    "elimination-greedy", "elimination-greedy-printed", "elimination-random", "elimination-lp",
    "elimination-blocks", "elimination-euler", "elimination-home-away", "elimination-optimal",
    "pooled-elimination", "pooled-explore-then-commit", "pooled-thompson", "shoal",
    "explore-then-commit", "ucb", "thompson", "random", "best-arm",
)  # fmt: skip
ROLES = ("app", "operator", "analyst", "admin", "monitor")


def policies() -> list[str]:
    """Return the names of Shoal's policies and of those that other distributions bring."""
    from importlib.metadata import entry_points

    return [*POLICIES, *(entry.name for entry in entry_points(group="shoal.policies"))]


class Name(click.types.StringParamType):
    """One of some names, or several with commas between; what is unknown the library refuses.

    Its error names the nearest known name, which ``click.Choice`` would not.
    """

    def __init__(
        self,
        names: Sequence[str] | Callable[[], Sequence[str]],
        *,
        many: bool = False,
        shown: bool = True,
    ) -> None:
        self._names, self._many, self._shown = names, many, shown

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Show the names in the help, where they are few."""
        if not self._shown or callable(self._names):
            return None
        return f"[{'|'.join(self._names)}]" + (",..." if self._many else "")

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the last name."""
        before, comma, last = incomplete.rpartition(",") if self._many else ("", "", incomplete)
        names = self._names() if callable(self._names) else self._names
        return [CompletionItem(before + comma + name) for name in names if name.startswith(last)]
