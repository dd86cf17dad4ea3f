"""The same machine code for kernels on every x86-64 processor since 2013 (Haswell).

All tests run with it, so that the recordings, which must be equal on every machine, find the
kernels that other tests have compiled.
"""

from __future__ import annotations

import os
import platform

PINNED = platform.machine() in ("x86_64", "AMD64")
FEATURES = "+avx,+avx2,+bmi,+bmi2,+cx16,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse4.1,+sse4.2,+ssse3"


def pin_kernels() -> None:
    """Let Numba compile for Haswell, with its features and no others; before Numba is imported."""
    if PINNED:
        os.environ.update(NUMBA_CPU_NAME="haswell", NUMBA_CPU_FEATURES=FEATURES)


def limit_threads() -> None:
    """Let linear algebra run on one thread, here and in what is started; before NumPy is imported.

    Workers share the cores: the threads of each would wait for each other, at full speed.
    """
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
