"""Where independent pieces of work run, behind one small interface.

The Ray engine is in ``shoal.engines.ray`` and needs the extra ``cluster``.
"""

from shoal.engines.base import Engine, Tick
from shoal.engines.local import LocalEngine
from shoal.engines.registry import make_engine

__all__ = ["Engine", "LocalEngine", "Tick", "make_engine"]
