"""Where independent pieces of work run, behind one small interface.

The Ray engine is in ``shoal.engines.ray`` and needs the extra ``cluster``.
"""

from shoal.engines.base import Engine, Job, Steps, Tick
from shoal.engines.local import LocalEngine
from shoal.errors import InvalidInputError, UnknownNameError

__all__ = ["Engine", "Job", "LocalEngine", "Steps", "Tick", "make_engine"]

ENGINES = ("local", "ray")


def make_engine(
    name: str = "local", *, n_workers: int | None = None, address: str | None = None
) -> Engine:
    """Return the engine of this name.

    Parameters
    ----------
    n_workers
        Tasks at a time, at most; by default one per core.
    address
        Only of "ray": HOST:PORT of a cluster to join, or "auto" for the one that runs here.

    Examples
    --------
    >>> make_engine("local", n_workers=2).n_workers
    2
    >>> make_engine("rya")
    Traceback (most recent call last):
    shoal.errors.UnknownNameError: engine must be a known name; got 'rya': did you mean 'ray'?
    """
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    if name == "ray":
        from shoal.engines.ray import RayEngine

        return RayEngine(address=address, n_workers=n_workers)
    if address is not None:
        raise InvalidInputError(f"address must be left out of the engine 'local'; got {address!r}.")
    return LocalEngine(n_workers=n_workers)
