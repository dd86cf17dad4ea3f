"""Sweeps: grids of simulations in a folder, that go on where they were stopped."""

from shoal.simulation.sweeps.configuration import Configuration, read_configuration
from shoal.simulation.sweeps.results import read_sweep
from shoal.simulation.sweeps.run import Outcome, sweep
from shoal.simulation.sweeps.status import Status, status

__all__ = [
    "Configuration",
    "Outcome",
    "Status",
    "read_configuration",
    "read_sweep",
    "status",
    "sweep",
]
