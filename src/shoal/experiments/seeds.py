"""Independent streams of randomness from one seed, named by what they are for.

A stream depends on the seed and its names only: not on the engine, the number of workers or the
other streams. So every policy meets the same instances, and a run can be repeated alone.
"""

import zlib

import numpy as np

from shoal.model.numbers import whole_number


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return the generator for ``names`` under ``seed``.

    >>> stream(0, "instance", "uniform", 3).integers(100)
    np.int64(11)
    """
    key = tuple(zlib.crc32(n.encode()) if isinstance(n, str) else n for n in names)
    entropy = whole_number("seed", seed, minimum=0)
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))
