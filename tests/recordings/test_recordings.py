"""The redesign changes no byte: what Shoal plans, prints, answers and stores is what it was.

A difference that is meant is recorded again (``record``) and listed in the changelog.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.recordings.conftest import POSTGRES
from tests.recordings.pinned import Recording
from tests.recordings.record import GROUPS, recorded
from tests.recordings.service import SHORT

Computed = Callable[[str], Recording]

RECORDED = {group: recorded(group) for group in GROUPS}
RECORDED[POSTGRES] = {  # without what has its first rounds recorded
    key: value
    for key, value in RECORDED["service"].items()
    if key + SHORT not in RECORDED["service"]
}
KEYS = [(group, key) for group, keys in RECORDED.items() for key in keys]
RESTORED = [key for key in RECORDED["policies"] if key.endswith(", restored")]


@pytest.mark.parametrize("group", RECORDED)
def test_every_recording_is_compared(group: str, computed: Computed) -> None:
    found = computed(group)
    assert "failed" not in found, found["failed"]
    assert found.keys() == RECORDED[group].keys()


@pytest.mark.parametrize(("group", "key"), KEYS)
def test_the_redesign_changes_no_byte(group: str, key: str, computed: Computed) -> None:
    found = computed(group)
    assert key in found, "it was not computed"
    assert found[key] == RECORDED[group][key]


@pytest.mark.parametrize("key", RESTORED)
@pytest.mark.parametrize("group", ["policies"])
def test_a_restored_policy_goes_on_as_if_never_interrupted(
    group: str, key: str, computed: Computed
) -> None:
    found = computed(group)
    assert found[key] == found[key.removesuffix(", restored")]
