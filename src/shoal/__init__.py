"""Shoal: bandits that personalise for everyone while observing no one.

The names below are loaded on first use, so that ``import shoal`` and ``shoal --help`` stay light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.decompositions import decompose
    from shoal.experiments import compare, simulate
    from shoal.model import Feedback, Plan, Problem

__version__ = "0.1.0"
__all__ = ["Feedback", "Plan", "Problem", "__version__", "compare", "decompose", "simulate"]

_HOMES = {
    "Feedback": "shoal.model",
    "Plan": "shoal.model",
    "Problem": "shoal.model",
    "compare": "shoal.experiments",
    "decompose": "shoal.decompositions",
    "simulate": "shoal.experiments",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'shoal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
