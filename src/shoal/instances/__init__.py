"""Instances: sources of means, (n_users, n_arms); environments draw the rewards.

Logs, populations and ``load_means`` are loaded on first use: they need polars and SciPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal.instances.lower_bounds import FAMILIES, lower_bound
from shoal.instances.synthetic import INSTANCES, clustered, instance, linear, uniform

if TYPE_CHECKING:
    from shoal.instances.files import load_means
    from shoal.instances.logs import Log, from_log
    from shoal.instances.population import Population

__all__ = [
    "FAMILIES",
    "INSTANCES",
    "Log",
    "Population",
    "clustered",
    "from_log",
    "instance",
    "linear",
    "load_means",
    "lower_bound",
    "uniform",
]

_HOMES = {
    "Log": "shoal.instances.logs",
    "Population": "shoal.instances.population",
    "from_log": "shoal.instances.logs",
    "load_means": "shoal.instances.files",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'shoal.instances' has no attribute {name!r}")
