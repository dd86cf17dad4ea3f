from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import InvalidInputError
from shoal.model import Problem
from shoal.model.container import pack, unpack
from shoal.policies import POLICIES, make_policy

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(-5, 5), inner)
    ),
    max_leaves=20,
)


@given(plain)
@settings(deadline=None, derandomize=True)
def test_plain_values_come_back_as_they_were(value: object) -> None:
    assert unpack(pack(value)) == value
    assert pack(unpack(pack(value))) == pack(value)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint64", "float32", "float64", "U5"])
def test_arrays_come_back_with_type_shape_and_bytes(dtype: str) -> None:
    for array in (np.arange(6).reshape(2, 3).astype(dtype), np.zeros((0, 4), dtype)):
        copy = unpack(pack({"a": [array, array[:1]]}))["a"][0]
        assert (copy.dtype, copy.shape, copy.tobytes()) == (
            array.dtype, array.shape, array.tobytes(),
        )  # fmt: skip
        assert copy.flags.writeable
    scalar = unpack(pack(np.float64(0.1)))
    assert (type(scalar), scalar) == (np.float64, 0.1)


def test_what_is_not_plain_is_refused() -> None:
    for value in (object(), {1, 2}, np.array([object()]), len):
        with pytest.raises(InvalidInputError, match="state must be plain values"):
            pack(value)


@pytest.mark.parametrize("key", [(1, 2), np.int64(3), np.float64(0.5), np.str_("a"), 2**70])
def test_a_key_that_would_not_come_back_is_refused(key: object) -> None:
    with pytest.raises(InvalidInputError, match=r"^keys of a dict in the state must be strings,"):
        pack({"plays": {key: 1}})


def test_keys_come_back_as_they_were() -> None:
    for key in ("a", b"a", None, True, -5, 2**63 - 1, 0.5):
        (copy,) = unpack(pack({key: 1}))
        assert (type(copy), copy) == (type(key), key)


@pytest.mark.parametrize(
    "name", [n for n, e in POLICIES.items() if e.anonymous and not e.hindsight]
)
def test_every_policys_state_survives_the_bytes(name: str) -> None:
    problem = Problem(n_users=12, n_arms=3, min_group_size=2, horizon=300)
    first = make_policy(name, problem, rng=np.random.default_rng(5))
    first.ask()
    second = make_policy(name, problem, rng=np.random.default_rng(6))
    second.restore(unpack(pack(first.state())))
    assert pack(second.state()) == pack(first.state())
