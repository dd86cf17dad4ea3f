"""The array types of the library: one name for each dtype, so that kernels are compiled once.

Arms and groups are 32-bit integers, totals and means 64-bit floats; shapes stand beside each use.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int32]
LongArray = NDArray[np.int64]
WholeArray = NDArray[np.integer[Any]]
"""Integers of any size."""
CountArray = NDArray[np.integer[Any] | np.bool_]
"""Counts over a plan's rounds; truth values where it is played once."""
FloatArray = NDArray[np.float64]
SmallFloatArray = NDArray[np.float32]
FractionArray = NDArray[np.object_]
"""Exact fractions, for proofs."""
