"""The one rule for a policy's options: those that ``shoal tune`` chose, and the caller's own."""

import json
from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from shoal.errors import InvalidInputError, UnknownNameError
from shoal.model.numbers import shortened, truth_value
from shoal.policies.own import PolicyLike, label
from shoal.policies.registry import POLICIES, check_options

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


def options_by_policy(
    options: Mapping[Any, Mapping[str, Any]] | None, name: Callable[[PolicyLike], str]
) -> dict[str, Mapping[str, Any]]:
    """Return the options of several policies by what ``name`` calls each, or refuse them.

    >>> options_by_policy({"shoal": None}, label)
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: options of 'shoal' must be a mapping of names to values; \
got None.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise InvalidInputError(
            f"options must be a mapping of policies to their options; got {shortened(options)}."
        )
    for policy, values in options.items():
        if not isinstance(values, Mapping):
            raise InvalidInputError(
                f"options of {label(policy)!r} must be a mapping of names to values; "
                f"got {shortened(values)}."
            )
    return {name(policy): values for policy, values in options.items()}


def check_played(kind: str, policy: str, policies: Collection[str]) -> None:
    """Refuse options of a policy that is not among those that are played."""
    if policy not in policies:
        raise (_NotPlayedError if policy in POLICIES else UnknownNameError)(kind, policy, policies)


class _NotPlayedError(UnknownNameError):
    """A known policy that is not played: the nearest of those that are would not be meant."""

    def __str__(self) -> str:
        kind, name, played, _ = self.args
        return f"{kind} must be one of those that are played, {', '.join(played)}; got {name!r}."
