"""Policies from outside the package: a class, ``module:Class``, or an installed entry point.

A name in the group ``shoal.policies`` of an installed distribution is known as those of Shoal are::

    [project.entry-points."shoal.policies"]
    epsilon-greedy = "my_package.policies:EpsilonGreedy"
"""

import ast
import hashlib
import inspect
import pickle
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

from shoal.errors import InvalidInputError, UnknownNameError
from shoal.model.numbers import plain, shortened
from shoal.policies.base import Policy

GROUP = "shoal.policies"

_KNOWN_PACKAGES = {"shoal", *sys.stdlib_module_names}

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
    if fits and inspect.isabstract(maker):
        raise InvalidInputError(
            f"a policy's class must define _choose and _learn; got {maker.__name__} without "
            f"{' and '.join(sorted(maker.__abstractmethods__))}."
        )
    if fits:
        try:
            inspect.signature(maker).bind_partial(None, rng=None)
        except (TypeError, ValueError) as error:
            if isinstance(maker, partial):
                _check_partial(maker)
            if isinstance(maker, type):
                raise InvalidInputError(
                    f"{maker.__name__}.__init__ must take (problem, *, rng), and options with "
                    f"defaults; it {error}."
                ) from None
            fits = False
    if not fits:
        raise InvalidInputError(
            "policy must be a known name, module:Class, a subclass of shoal.policies.Policy or a "
            f"function of (problem, *, rng) that makes one; got {shortened(maker)}."
        )
    return maker  # type: ignore[no-any-return]


def _check_partial(maker: "partial[Policy]") -> None:
    """Refuse an option that a partial sets, and what it calls does not have."""
    try:
        parameters = inspect.signature(maker.func).parameters
    except (TypeError, ValueError):  # as of some that are written in C
        return
    if any(part.kind is part.VAR_KEYWORD for part in parameters.values()):
        return
    known = [name for name in parameters if name not in ("problem", "rng")]
    for option in maker.keywords:
        if option not in parameters:
            raise UnknownNameError(f"option of {label(maker)!r}", option, known)


def label(policy: PolicyLike) -> str:
    """Return what records and figures call a policy.

    >>> from shoal.policies.baselines import UCB
    >>> label("shoal"), label(UCB)
    ('shoal', 'UCB')
    """
    if isinstance(policy, partial) and not hasattr(policy, "__name__"):
        return label(policy.func)
    return policy if isinstance(policy, str) else getattr(policy, "__name__", type(policy).__name__)


def unwrap(policy: PolicyLike) -> tuple[PolicyLike, dict[str, Any]]:
    """Return what a ``functools.partial`` calls, with the options that it sets; others as they are.

    >>> from shoal.policies.baselines import Thompson
    >>> unwrap(partial(Thompson, model="gaussian"))[1]
    {'model': 'gaussian'}
    """
    options: dict[str, Any] = {}
    while isinstance(policy, partial):
        by_position = inspect.signature(policy.func).bind_partial(*policy.args).arguments
        options = {**by_position, **policy.keywords, **options}
        policy = policy.func
    return policy, {name: plain(value) for name, value in options.items() if name != "rng"}


def all_options(policy: PolicyLike, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a policy has: those that a partial sets, and ``options`` over them.

    >>> from shoal.policies.baselines import Thompson
    >>> all_options(partial(Thompson, model="gaussian"), {})
    {'model': 'gaussian'}
    """
    return unwrap(policy)[1] | dict(options)


def identity(policy: PolicyLike) -> str:
    """Return the name by which any process that can import it finds a policy.

    That of a ``functools.partial`` is the name of what it calls.
    """
    maker, _ = unwrap(policy)
    if isinstance(maker, str):
        return maker
    return f"{maker.__module__}:{getattr(maker, '__qualname__', type(maker).__qualname__)}"


def importable(policy: PolicyLike) -> str:
    """Return a policy's identity, or refuse one that another process could not import by it."""
    name = identity(policy)
    if isinstance(policy, str):
        return name
    if isinstance(policy, partial):
        raise InvalidInputError(
            "policy must be a class or function with its options beside it, so that it can be "
            f"found again; got a partial of {name}."
        )
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

    It can't where the class exists in this process alone: in a notebook, inside a function or
    under a script's main guard.
    """
    if isinstance(policy, str):
        return True
    try:
        data = pickle.dumps(policy)
    except Exception:  # pickle may raise anything
        return False
    if b"__main__" not in data:
        return True
    script = Path(getattr(sys.modules["__main__"], "__file__", ""))
    name = identity(policy).partition(":")[2].partition(".")[0]
    return script.is_file() and name not in _names_under_main_guard(script.read_bytes())


def _names_under_main_guard(source: bytes) -> set[str]:
    """Return the classes and functions that a script defines only where it is run."""
    return {
        part.name
        for guard in ast.parse(source).body
        if isinstance(guard, ast.If) and "__name__" in ast.unparse(guard.test)
        for part in ast.walk(guard)
        if isinstance(part, ast.ClassDef | ast.FunctionDef)
    }


def code_hash(name: str) -> str:
    """Return a hash of the files that define a policy, so that results of other code differ.

    They are the file of the class and those of its base classes, but for Shoal's and Python's; of a
    function, its own.
    """
    maker = inspect.unwrap(load_maker(name))
    parts = [maker]
    if isinstance(maker, type):
        parts += [base for base in maker.__mro__[1:] if _package(base) not in _KNOWN_PACKAGES]
    files = dict.fromkeys(map(_source_file, parts))
    sources = [file.read_bytes() if file else name.encode() for file in files]
    return hashlib.sha256(b"\0".join([name.encode(), *sources])).hexdigest()[:20]


def own_place(error: BaseException) -> str:
    """Say where in code outside Shoal, Python and installed packages an error came from.

    Empty where there is no such place.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        file = Path(frame.f_code.co_filename)
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _KNOWN_PACKAGES and "site-packages" not in file.parts:
            return f"{file}, line {frame.f_lineno}, in {frame.f_code.co_name}"
    return ""


def _package(part: Any) -> str:
    return str(part.__module__).partition(".")[0]


def _source_file(part: Any) -> Path | None:
    """Return the file that defines a class or function, None where there is none to read."""
    try:
        file = Path(inspect.getsourcefile(part) or "")
    except (OSError, TypeError):
        return None
    return file if file.is_file() else None
