"""The arms of a campaign: each has a slot for good, and the rounds that may play it.

A round's arms are settled when it is asked for: a change counts from the round after. So what may
be played in a round follows from the store alone, at any time, and an arm's slot is never given to
another: what was learnt in a slot is always about one arm.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, insert, update

from shoal.arrays import BoolArray
from shoal.service.campaign import Campaign
from shoal.service.problems import (
    ARM_RETIRED,
    ARMS_FIXED,
    ARMS_FULL,
    LAST_ARM,
    UNKNOWN_ARM,
    ProblemError,
)
from shoal.service.store import aggregator as store


@dataclass(frozen=True, slots=True)
class Arm:
    """An arm, the first round that may play it and, once it is retired, the first that may not."""

    name: str
    since: int
    until: int | None = None


def offered(arms: Sequence[Arm], number: int, n_slots: int) -> BoolArray:
    """Return which slots a round may play, (n_slots,).

    >>> offered([Arm("a", 1), Arm("b", 1, 3), Arm("c", 3)], 3, 4).tolist()
    [True, False, True, False]
    """
    mask = np.zeros(n_slots, bool)
    for slot, arm in enumerate(arms):
        mask[slot] = arm.since <= number and (arm.until is None or number < arm.until)
    return mask


def insert_arms(
    connection: Connection, campaign: str, names: Iterable[str], *, first: int, since: int
) -> None:
    """Give arms the slots from ``first`` on."""
    rows = [
        {"campaign": campaign, "slot": slot, "name": name, "since": since}
        for slot, name in enumerate(names, first)
    ]
    connection.execute(insert(store.arms), rows)


def check_new(campaign: Campaign, arms: Sequence[Arm], name: str) -> bool:
    """Return whether an arm is new to a campaign, or refuse it."""
    for arm in arms:
        if arm.name == name:
            if arm.until is not None:
                raise ProblemError(ARM_RETIRED)
            return False
    if len(arms) >= campaign.n_arms:
        raise ProblemError(ARMS_FULL)
    return True


def check_retirable(campaign: Campaign, arms: Sequence[Arm], name: str) -> bool:
    """Return whether an arm is still offered and may be retired, or refuse that."""
    by_name = {arm.name: arm for arm in arms}
    if name not in by_name:
        raise ProblemError(UNKNOWN_ARM)
    if by_name[name].until is not None:
        return False
    if not campaign.is_flexible():
        raise ProblemError(ARMS_FIXED)
    if not any(arm.until is None for arm in arms if arm.name != name):
        raise ProblemError(LAST_ARM)
    return True


def retire(connection: Connection, campaign: str, name: str, *, until: int) -> None:
    """Play an arm no more from round ``until`` on."""
    table = store.arms
    of_arm = (table.c.campaign == campaign, table.c.name == name)
    connection.execute(update(table).where(*of_arm).values(until=until))
