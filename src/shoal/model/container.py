"""A policy's state as bytes: MessagePack with arrays, tuples and large integers, and no pickle.

The same state gives the same bytes, and reading them can run no code.
"""

from typing import Any

import msgspec
import numpy as np
from msgspec.msgpack import Ext

from shoal.errors import InvalidInputError
from shoal.model.numbers import shortened

_ARRAY, _SCALAR, _TUPLE, _INTEGER = 1, 2, 3, 4


def pack(value: Any) -> bytes:
    """Return plain values (numbers, strings, arrays, lists, tuples, dicts) as bytes.

    >>> unpack(pack({"seed": 2**100, "means": (1.5, [None, True])}))
    {'seed': 1267650600228229401496703205376, 'means': (1.5, [None, True])}
    """
    return msgspec.msgpack.encode(_prepare(value))


def unpack(data: bytes) -> Any:
    """Return what was packed."""
    return msgspec.msgpack.decode(data, ext_hook=_restore)


def _prepare(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufU":
        header = [value.dtype.str, list(value.shape), np.ascontiguousarray(value).tobytes()]
        kind = _ARRAY if isinstance(value, np.ndarray) else _SCALAR
        return Ext(kind, msgspec.msgpack.encode(header))
    if value is None or isinstance(value, bool | float | str | bytes):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else Ext(_INTEGER, str(value).encode())
    if isinstance(value, dict):
        return {_check_key(key): _prepare(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_prepare(item) for item in value]
    if isinstance(value, tuple):
        return Ext(_TUPLE, pack(list(value)))
    raise InvalidInputError(f"state must be plain values and arrays; got {type(value).__name__}.")


def _check_key(key: Any) -> Any:
    """Return a key that comes back as it is, or refuse it."""
    is_large = isinstance(key, int) and not -(2**63) <= key < 2**63
    is_plain = key is None or isinstance(key, bool | int | float | str | bytes)
    if is_plain and not is_large and not isinstance(key, np.generic):
        return key
    raise InvalidInputError(
        "keys of a dict in the state must be strings, bytes, None, truth values or numbers of "
        f"Python below 2**63; got {shortened(key)}, a {type(key).__name__}."
    )


def _restore(code: int, data: memoryview) -> Any:
    if code == _INTEGER:
        return int(bytes(data))
    if code == _TUPLE:
        return tuple(unpack(bytes(data)))
    dtype, shape, content = msgspec.msgpack.decode(data)
    array = np.frombuffer(content, np.dtype(dtype)).reshape(shape).copy()
    return array if code == _ARRAY else array[()]
