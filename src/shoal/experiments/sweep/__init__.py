"""Sweeps: grids of simulations in a folder, which continue where they were stopped."""

from shoal.experiments.sweep.configuration import Configuration, read_configuration
from shoal.experiments.sweep.results import SweepStatus, read_sweep, status
from shoal.experiments.sweep.run import SweepSummary, sweep

__all__ = [
    "Configuration",
    "SweepStatus",
    "SweepSummary",
    "read_configuration",
    "read_sweep",
    "status",
    "sweep",
]
