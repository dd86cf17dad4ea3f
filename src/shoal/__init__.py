"""Shoal: bandits that personalise for everyone while observing no one.

The names below are loaded on first use, so that ``import shoal`` and ``shoal --help`` stay light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.decompositions import decompose
    from shoal.experiments import compare, simulate
    from shoal.experiments.price import price
    from shoal.model import Feedback, Plan, Problem, Roster
    from shoal.policies import load_policy, make_policy

__version__ = "0.2.0.dev0"
__all__ = [
    "Feedback",
    "Plan",
    "Problem",
    "Roster",
    "__version__",
    "compare",
    "decompose",
    "load_policy",
    "make_policy",
    "price",
    "simulate",
]

_HOMES = {
    "Feedback": "shoal.model",
    "Plan": "shoal.model",
    "Problem": "shoal.model",
    "Roster": "shoal.model",
    "compare": "shoal.experiments",
    "decompose": "shoal.decompositions",
    "load_policy": "shoal.policies",
    "make_policy": "shoal.policies",
    "price": "shoal.experiments",
    "simulate": "shoal.experiments",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        try:
            return getattr(import_module(_HOMES[name]), name)
        except ModuleNotFoundError as error:
            if error.name != _HOMES[name]:
                raise
            raise ImportError(
                f"{name} must come from shoal; got shoal-client, which has shoal.client alone."
            ) from None
    raise AttributeError(f"module 'shoal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
