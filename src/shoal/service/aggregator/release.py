"""One atomic release per round: merge, write the document, forget everything else.

The document is stored in the transaction that closes the round and served as it is ever after
(threats 6, 15 and 16). Its totals are over disjoint sets of at least C reporters, so no smaller
set can be derived from them (threats 1 and 7). Noise, where there is any, is drawn in that
transaction too, and is part of what is stored.
"""

from __future__ import annotations

import logging

import msgspec
import numpy as np
from sqlalchemy import Connection, insert, select, update

from shoal.arrays import BoolArray
from shoal.model.merging import merge_short
from shoal.service.aggregator.group_sums import Sums, read_sums
from shoal.service.aggregator.noise import add_noise, scale_of
from shoal.service.aggregator.rounds import RELEASED, FrozenPlan, Round, forget
from shoal.service.campaign import Campaign
from shoal.service.store import aggregator as store

log = logging.getLogger("shoal.service")


class Total(msgspec.Struct, frozen=True):
    """A released total: the reward steps of ``reporters`` users on one arm."""

    arm: str
    parts: tuple[int, ...]  # the plan's groups behind it
    reporters: int
    total: int


class Noise(msgspec.Struct, frozen=True):
    """The noise in the totals: discrete Laplace, drawn once."""

    epsilon: float
    scale: float  # in steps of the grid


class Document(msgspec.Struct, frozen=True):
    """All that is ever said about the rewards of one round."""

    campaign: str
    round: int
    plan: str
    reward_steps: int
    totals: tuple[Total, ...]
    withheld: int  # groups whose total is never released
    homogeneous: int  # totals that show everyone's reward: all 0 or all 1
    noise: Noise | None = None


def release(
    connection: Connection,
    round_: Round,
    plan: FrozenPlan,
    campaign: Campaign,
    key: bytes,
    *,
    now: int,
) -> Document:
    """Close an open round for good. The caller holds its lock."""
    numbers, first = np.unique(plan.groups, return_index=True)
    arms = {int(g): int(plan.arms[i]) for g, i in zip(numbers, first, strict=True) if g >= 0}
    sums: Sums = dict.fromkeys(arms, (0, 0))
    for group, (total, count) in read_sums(connection, round_.id, arms, key).items():
        if 0 <= total <= count * campaign.reward_steps:
            sums[group] = total, count
        else:  # the store is damaged: what no rewards could give is not released
            log.error("a sum that no rewards could give is withheld")
    groups = list(arms)
    into = merge_short(
        np.array([sums[group][1] for group in groups], np.int64),
        np.array([arms[group] for group in groups], np.int64),
        campaign.least,
    )
    parts: dict[int, list[int]] = {}
    for group, place in zip(groups, into.tolist(), strict=True):
        if place >= 0:
            parts.setdefault(place, []).append(group)
    exact = [sum(sums[group][0] for group in merged) for merged in parts.values()]
    totals = tuple(
        Total(
            campaign.arms[arms[merged[0]]],
            tuple(merged),
            sum(sums[group][1] for group in merged),
            total,
        )
        for merged, total in zip(parts.values(), add_noise(exact, campaign), strict=True)
    )
    full = campaign.reward_steps
    homogeneous, noise = 0, None
    if campaign.noise is None:
        homogeneous = sum(t.total in (0, t.reporters * full) for t in totals)
    else:  # the exact totals must not show in a count either
        noise = Noise(campaign.noise.epsilon, scale_of(campaign))
    document = Document(
        round_.campaign,
        round_.number,
        plan.hash,
        full,
        totals,
        int((into < 0).sum()),
        homogeneous,
        noise,
    )
    reporters = _reporters(connection, round_.id, campaign.seats)
    told = np.zeros(campaign.seats, bool)
    for item in totals:
        told[list(item.parts)] = True
    counted = reporters & (plan.groups >= 0) & told[plan.groups]
    connection.execute(
        insert(store.releases).values(
            round_id=round_.id,
            document=msgspec.json.encode(document),
            reporters=np.packbits(reporters).tobytes(),
            counted=np.packbits(counted).tobytes(),
        )
    )
    forget(connection, round_.id)
    table = store.rounds
    connection.execute(
        update(table).where(table.c.id == round_.id).values(state=RELEASED, closed_at=now)
    )
    return document


def stored(connection: Connection, round_id: int) -> bytes:
    """Return the document, byte for byte as it was released."""
    table = store.releases
    return bytes(
        connection.execute(
            select(table.c.document).where(table.c.round_id == round_id)
        ).scalar_one()
    )


def who(connection: Connection, round_id: int, n_seats: int, *, counted: bool) -> BoolArray:
    """Return the seats that reported, or those that are part of a released total, (n_seats,)."""
    table = store.releases
    column = table.c.counted if counted else table.c.reporters
    packed = connection.execute(select(column).where(table.c.round_id == round_id)).scalar_one()
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=n_seats).astype(bool)


def _reporters(connection: Connection, round_id: int, n_seats: int) -> BoolArray:
    table = store.reports
    mask = np.zeros(n_seats, bool)
    mask[list(connection.scalars(select(table.c.seat).where(table.c.round_id == round_id)))] = True
    return mask
