"""Measurements, side by side in one run; ``make bench`` runs them all.

Each module writes one page of docs/benchmarks, so that no number in the documentation is without
a command that prints it.
"""
