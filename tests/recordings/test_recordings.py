"""The redesign changes no byte: what Shoal plans, prints, answers and stores is what it was.

A difference that is meant is recorded again (``record``) and listed in the changelog.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.recordings.conftest import POSTGRES
from tests.recordings.pinned import Recording
from tests.recordings.record import GROUPS, recorded

Computed = Callable[[str], Recording]

FILES = {**{group: group for group in GROUPS}, POSTGRES: "service"}
KEYS = [(group, key) for group, file in FILES.items() for key in recorded(file)]
RESTORED = [key for key in recorded("policies") if key.endswith(", restored")]


@pytest.mark.parametrize("group", FILES)
def test_every_recording_is_compared(group: str, computed: Computed) -> None:
    found = computed(group)
    assert "failed" not in found, found["failed"]
    assert found.keys() == recorded(FILES[group]).keys()


@pytest.mark.parametrize(("group", "key"), KEYS)
def test_the_redesign_changes_no_byte(group: str, key: str, computed: Computed) -> None:
    found = computed(group)
    assert key in found, "it was not computed"
    assert found[key] == recorded(FILES[group])[key]


@pytest.mark.parametrize("key", RESTORED)
@pytest.mark.parametrize("group", ["policies"])
def test_a_restored_policy_goes_on_as_if_never_interrupted(
    group: str, key: str, computed: Computed
) -> None:
    found = computed(group)
    assert found[key] == found[key.removesuffix(", restored")]
