"""Sweeps: grids of simulations in a folder, which continue where they were stopped."""

from shoal.experiments.sweep.configuration import Configuration, read_configuration
from shoal.experiments.sweep.results import read_sweep
from shoal.experiments.sweep.run import SweepSummary, sweep
from shoal.experiments.sweep.status import SweepStatus, status

__all__ = [
    "Configuration",
    "SweepStatus",
    "SweepSummary",
    "read_configuration",
    "read_sweep",
    "status",
    "sweep",
]
