"""The same arithmetic on every x86-64 processor since 2013 (Haswell).

The last bits of a sum depend on how many numbers are added at once, which libraries choose by the
processor; a learner that meets another last bit may play another arm. So tests, recordings and the
outputs that pages show have all libraries pinned to what every such processor has:

- OpenBLAS, of NumPy and of SciPy: its Haswell kernels, on one thread. (Workers share the cores: the
  threads of each would wait for each other, at full speed.)
- Numba: code for Haswell, with its features and no others;
- NumPy: none of the AVX-512 variants that it would choose at run time. NumPy warns of a name that
  it has no variant for, and ignores one that the processor lacks: so all that it has are named.

The C library's mathematical functions can't be pinned; those of glibc use FMA on all such machines.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys

PINNED = platform.machine() in ("x86_64", "AMD64")
FEATURES = "+avx,+avx2,+bmi,+bmi2,+cx16,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse4.1,+sse4.2,+ssse3"
VARIANTS = "from numpy._core._multiarray_umath import __cpu_dispatch__; print(*__cpu_dispatch__)"


def pin_arithmetic() -> None:
    """Pin it here and in all that is started from here; before NumPy is imported."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    if not PINNED or os.environ.get("NUMBA_CPU_FEATURES") == FEATURES:  # which we alone set
        return
    if "numpy" in sys.modules:
        raise RuntimeError("NumPy has chosen its arithmetic: pin it before NumPy is imported.")
    found = subprocess.run([sys.executable, "-c", VARIANTS], stdout=subprocess.PIPE, check=True)
    names = found.stdout.decode().split()
    os.environ.update(
        OPENBLAS_CORETYPE="Haswell",
        NUMBA_CPU_NAME="haswell",
        NUMBA_CPU_FEATURES=FEATURES,
        NPY_DISABLE_CPU_FEATURES=" ".join(n for n in names if n.startswith(("AVX512", "X86_V4"))),
    )
