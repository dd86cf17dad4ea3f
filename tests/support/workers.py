"""Which tests run on one worker: those that share what takes long to start or to compute."""

from __future__ import annotations

import re

from xdist.scheduler import LoadScopeScheduling

SERVERS = {
    "postgresql": ("[postgresql", "[service on PostgreSQL", "tests/service/store/"),
    "cluster": ("tests/engines/test_ray", "::test_a_shard_killed_in_mid_run"),
}
"""What the names of tests that use a server have in common."""
RECORDING = re.compile(r"tests/recordings/.*?\[(?P<group>[\w ]+)")


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """A worker gets all tests of a group; it asks for the next group when it is done."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


def group(nodeid: str) -> str:
    """Return the server, the recording, or else the file that tests share.

    >>> group("tests/service/store/test_schema.py::test_an_upgrade[postgresql]")
    'postgresql'
    >>> group("tests/recordings/test_recordings.py::test_bytes[commands-shoal policies --json]")
    'commands'
    >>> group("tests/test_bounds.py::test_limits[1-2]")
    'tests/test_bounds.py'
    """
    for server, parts in SERVERS.items():
        if any(part in nodeid for part in parts):
            return server
    recording = RECORDING.match(nodeid)
    return recording["group"] if recording else nodeid.partition("::")[0]
