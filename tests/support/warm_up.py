"""Compile the kernels on one core while the checks run on the other: short runs of every policy."""

from __future__ import annotations

from tests.recordings.pinned import compute

if __name__ == "__main__":
    compute("policies")
