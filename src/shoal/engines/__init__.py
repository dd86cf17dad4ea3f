"""Where independent pieces of work run, behind one small interface."""

from shoal.engines.base import Engine, Tick
from shoal.engines.local import LocalEngine

__all__ = ["Engine", "LocalEngine", "Tick"]
