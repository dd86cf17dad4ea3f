"""Documents as they are recorded: without what differs from run to run, long arrays as hashes."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

VOLATILE = frozenset({"seconds", "seconds_left", "python", "shoal", "numpy", "numba", "tried"})
LONG = 24  # numbers in a list


def short_hash(data: bytes) -> str:
    """Return enough of a hash to tell two recordings apart."""
    return sha256(data).hexdigest()[:32]


def tidy(value: Any) -> Any:
    """Return a document without times and versions, its long lists of numbers as hashes."""
    if isinstance(value, dict):
        return {str(key): tidy(item) for key, item in value.items() if key not in VOLATILE}
    if isinstance(value, list | tuple):
        if len(value) > LONG and all(isinstance(item, int | float) for item in value):
            return f"{len(value)} numbers, {short_hash(json.dumps(value).encode())}"
        return [tidy(item) for item in value]
    return value
