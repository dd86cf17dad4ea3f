"""The learner's calls to the aggregator: read tasks and releases, publish plans."""

import msgspec
import numpy as np

from shoal.arrays import BoolArray, IntArray
from shoal.client.calls import Call, encode, path_of, read_as, read_nothing
from shoal.wire import CountedRelease, Estimates, PlanWithEstimates, Release, Sync, TaskList

LearntRelease = tuple[Release, BoolArray, IntArray]  # with who counts, and with whom
Eligible = tuple[BoolArray, BoolArray, BoolArray]  # seats of active users, arms, seats held out


def read_tasks(sync: Sync) -> Call[TaskList]:
    """Say how far the learner is, and wait for work."""
    return Call(
        "POST", path_of("learner", "work"), read_as(TaskList), encode(sync), seconds=sync.wait
    )


def read_release(name: str, number: int, n_seats: int) -> Call[LearntRelease]:
    """Read a release, the seats that are part of one of its totals, and its groups."""

    def read(content: bytes) -> LearntRelease:
        answer = msgspec.json.decode(content, type=CountedRelease)
        release = msgspec.json.decode(answer.release, type=Release)
        groups = np.frombuffer(answer.groups, "<i4").astype(np.int32)
        return release, _bits(answer.counted, n_seats), groups

    return Call("GET", path_of("learner", "campaigns", name, "rounds", number, "release"), read)


def read_eligible(name: str, number: int, n_seats: int, n_arms: int) -> Call[Eligible]:
    """Read who may play what in a round."""
    path = path_of("campaigns", name, "rounds", number, "eligible")
    return Call("GET", path, lambda content: unpack_eligible(content, n_seats, n_arms))


def publish_plan(
    name: str, number: int, arms: IntArray, groups: IntArray, estimates: Estimates | None
) -> Call[None]:
    """Freeze a plan, with what is believed of the arms before the round."""
    arm_bytes, group_bytes = (column.astype("<i4").tobytes() for column in (arms, groups))
    body = encode(PlanWithEstimates(arm_bytes, group_bytes, estimates))
    path = path_of("learner", "campaigns", name, "rounds", number, "plan")
    return Call("PUT", path, read_nothing, body)


def unpack_eligible(packed: bytes, n_seats: int, n_arms: int) -> Eligible:
    """Return who may play what, and who is held out.

    From a bit per seat, a bit per arm and, where there is a holdout, a bit per seat again, each
    from a new byte on.
    """
    n_bytes = (n_seats + 7) // 8
    end = n_bytes + (n_arms + 7) // 8
    held_out = packed[end:] or bytes(n_bytes)
    return (
        _bits(packed[:n_bytes], n_seats), _bits(packed[n_bytes:end], n_arms),
        _bits(held_out, n_seats),
    )  # fmt: skip


def _bits(packed: bytes, count: int) -> BoolArray:
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=count).astype(bool)
