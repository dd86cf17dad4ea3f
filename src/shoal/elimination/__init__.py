"""Batched successive elimination (Section 2.2 and Appendix A)."""

from shoal.elimination.base import best_arms, eliminate
from shoal.elimination.grid import GRIDS, batch_ends, default_batches

__all__ = ["GRIDS", "batch_ends", "best_arms", "default_batches", "eliminate"]
