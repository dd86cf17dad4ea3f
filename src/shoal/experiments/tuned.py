"""The options that ``shoal tune`` chose, as they ship with the package."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def shipped() -> dict[str, Any]:
    """Return the file that ``shoal tune`` wrote: choices, grid, seeds and setting."""
    text = files("shoal.experiments").joinpath("tuned.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def tuned_options(instance: str, policy: str) -> dict[str, Any]:
    """Return the options chosen for a policy on a class of instances, empty where none were.

    >>> sorted(tuned_options("uniform", "explore-then-commit"))
    ['exploration']
    """
    return dict(shipped()["chosen"].get(instance, {}).get(policy, {}).get("options", {}))
