"""The one rule for a policy's options: those that ``shoal tune`` chose, and the caller's own."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from shoal.model.numbers import truth_value
from shoal.policies.own import PolicyLike
from shoal.policies.registry import check_options

DEFAULT_CLASS = "uniform"
"""Populations of a class that nothing was tuned on take the choices of this one."""


@cache
def shipped() -> dict[str, Any]:
    """Return the file that ``shoal tune`` wrote: choices, grid, seeds and setting."""
    text = files("shoal.policies").joinpath("tuned.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def tuned_options(instance: str, policy: str) -> dict[str, Any]:
    """Return the options chosen for a policy on a class of instances, empty where none were.

    >>> tuned_options("uniform", "explore-then-commit")
    {'exploration': 0.18}
    """
    chosen = shipped()["chosen"]
    choice = chosen.get(instance, chosen[DEFAULT_CLASS]).get(policy, {})
    return dict(choice.get("options", {}))


def resolve_options(
    policy: PolicyLike,
    options: Mapping[str, Any] | None = None,
    *,
    instance: str = DEFAULT_CLASS,
    tuned: bool = True,
) -> dict[str, Any]:
    """Return the options that a policy is made with: ``options`` over the tuned ones.

    Parameters
    ----------
    policy
        As ``find_policy`` takes it; nothing is tuned for a policy of the caller's own.
    instance
        Class of the instances that are played.
    tuned
        False starts from the policy's defaults instead.

    Examples
    --------
    >>> resolve_options("pooled-elimination"), resolve_options("pooled-elimination", tuned=False)
    ({'gamma': 2.0}, {})
    """
    starts_tuned = truth_value("tuned", tuned) and isinstance(policy, str)
    start = tuned_options(instance, str(policy)) if starts_tuned else {}
    return start | check_options(policy, {} if options is None else options)
