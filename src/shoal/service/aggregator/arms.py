"""The arms of a campaign: each has a slot for good, and the rounds that may play it.

A round's arms are settled when it is asked for: a change counts from the round after. So what may
be played in a round follows from the store alone, at any time, and an arm's slot is never given to
another: what was learnt in a slot is always about one arm.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, insert, select, update

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


def load(connection: Connection, campaign: str) -> list[Arm]:
    """Return all arms that a campaign has ever had, by slot."""
    table = store.arms
    query = select(table.c.name, table.c.since, table.c.until)
    rows = connection.execute(query.where(table.c.campaign == campaign).order_by(table.c.slot))
    return [Arm(*row) for row in rows]


def insert_arms(
    connection: Connection, campaign: str, names: Iterable[str], *, first: int, since: int
) -> None:
    """Give arms the slots from ``first`` on."""
    rows = [
        {"campaign": campaign, "slot": first + i, "name": name, "since": since}
        for i, name in enumerate(names)
    ]
    connection.execute(insert(store.arms), rows)


def add(connection: Connection, name: str, campaign: Campaign, arm: str, *, number: int) -> bool:
    """Offer a new arm from round ``number`` on; return False where it is offered already."""
    known = load(connection, name)
    for found in known:
        if found.name == arm:
            if found.until is not None:
                raise ProblemError(ARM_RETIRED)
            return False
    if len(known) >= campaign.n_arms:
        raise ProblemError(ARMS_FULL)
    insert_arms(connection, name, [arm], first=len(known), since=number)
    return True


def retire(connection: Connection, name: str, campaign: Campaign, arm: str, *, number: int) -> bool:
    """Play an arm no more from round ``number`` on, for good; False where it is retired already."""
    known = {found.name: found for found in load(connection, name)}
    if arm not in known:
        raise ProblemError(UNKNOWN_ARM)
    if known[arm].until is not None:
        return False
    if not campaign.is_flexible():
        raise ProblemError(ARMS_FIXED)
    if not any(found.until is None for found in known.values() if found.name != arm):
        raise ProblemError(LAST_ARM)
    table = store.arms
    connection.execute(
        update(table).where(table.c.campaign == name, table.c.name == arm).values(until=number)
    )
    return True
