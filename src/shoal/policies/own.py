"""Policies from outside the package: a class, ``module:Class``, or an installed entry point.

A name in the group ``shoal.policies`` of an installed distribution is known as those of Shoal are::

    [project.entry-points."shoal.policies"]
    epsilon-greedy = "my_package.policies:EpsilonGreedy"
"""

import hashlib
import inspect
import pickle
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

from shoal.errors import InvalidInputError
from shoal.model.numbers import shortened
from shoal.policies.base import Policy

GROUP = "shoal.policies"

PolicyMaker: TypeAlias = Callable[..., Policy]
"""A class of policies, or anything else that makes one from (problem, rng=..., **options)."""

PolicyLike: TypeAlias = str | PolicyMaker
"""A policy as experiments and commands take it: its name, ``module:Class``, or its maker."""


@cache
def installed() -> dict[str, EntryPoint]:
    """Return the entry points that distributions have installed, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def load_maker(name: str) -> PolicyMaker:
    """Import the maker that an entry point or a ``module:Class`` names.

    >>> load_maker("shoal.policies.baselines:UBC")
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: policy must be module:Class that can be imported; \
got 'shoal.policies.baselines:UBC': module 'shoal.policies.baselines' has no attribute 'UBC'.
    """
    target = installed()[name].value if name in installed() else name
    module, _, path = target.partition(":")
    try:
        maker = attrgetter(path)(import_module(module))
    except Exception as error:  # whatever the module does when it is imported
        reason = str(error).rstrip(".")
        if not isinstance(error, AttributeError):
            reason = f"{type(error).__name__}: {reason}"
        raise InvalidInputError(
            f"policy must be module:Class that can be imported; got {name!r}: {reason}."
        ) from error
    return check_maker(maker)


def check_maker(maker: Any) -> PolicyMaker:
    """Return what can make a policy, or refuse it; it is not called."""
    fits = issubclass(maker, Policy) if isinstance(maker, type) else callable(maker)
    if fits:
        try:
            inspect.signature(maker).bind_partial(None, rng=None)
        except (TypeError, ValueError):
            fits = False
    if not fits:
        raise InvalidInputError(
            "policy must be a known name, module:Class, a subclass of shoal.policies.Policy or a "
            f"function of (problem, *, rng) that makes one; got {shortened(maker)}."
        )
    return maker  # type: ignore[no-any-return]


def label(policy: PolicyLike) -> str:
    """Return what records and figures call a policy.

    >>> from shoal.policies.baselines import UCB
    >>> label("shoal"), label(UCB)
    ('shoal', 'UCB')
    """
    return policy if isinstance(policy, str) else getattr(policy, "__name__", type(policy).__name__)


def identity(policy: PolicyLike) -> str:
    """Return the name by which any process that can import it finds a policy."""
    if isinstance(policy, str):
        return policy
    return f"{policy.__module__}:{getattr(policy, '__qualname__', type(policy).__qualname__)}"


def importable(policy: PolicyLike) -> str:
    """Return a policy's identity, or refuse one that another process could not import by it."""
    name = identity(policy)
    if isinstance(policy, str):
        return name
    module = sys.modules.get(policy.__module__)
    try:
        same = attrgetter(name.partition(":")[2])(module) is policy
    except AttributeError:
        same = False
    if not same or policy.__module__ == "__main__":
        raise InvalidInputError(
            f"policy must be defined in a module, so that it can be found again; got {name}."
        )
    return name


def is_sendable(policy: PolicyLike) -> bool:
    """Say whether a process that is started for it can play a policy.

    It can't where the class exists in this process alone: in a notebook or inside a function.
    """
    if isinstance(policy, str):
        return True
    try:
        data = pickle.dumps(policy)
    except Exception:  # pickle may raise anything
        return False
    script = getattr(sys.modules["__main__"], "__file__", "")
    return b"__main__" not in data or Path(script).is_file()


def code_hash(name: str) -> str:
    """Return a hash of the file that defines a policy, so that results of other code differ."""
    maker = load_maker(name)
    try:
        file = inspect.getsourcefile(inspect.unwrap(maker))
        source = Path(file or "").read_bytes()
    except (OSError, TypeError):
        source = name.encode()  # without a file there is nothing but the name
    return hashlib.sha256(source).hexdigest()[:20]
