"""The aggregator: takes individual rewards, gives totals of at least C reporters, nothing else."""

from shoal.service.aggregator.service import Aggregator

__all__ = ["Aggregator"]
