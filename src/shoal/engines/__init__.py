"""Where independent pieces of work run, behind one small interface.

The Ray engine is in ``shoal.engines.ray`` and needs the extra ``cluster``.
"""

from shoal.engines.base import Engine, Tick
from shoal.engines.local import LocalEngine
from shoal.engines.registry import make_engine
from shoal.engines.steps import Job, Steps

__all__ = ["Engine", "Job", "LocalEngine", "Steps", "Tick", "make_engine"]
