"""What the dashboard shows of a released round: one small row per arm that someone played.

A row follows from the frozen plan and the release alone, and is written in the transaction of the
release. So a page on thousands of rounds reads a few numbers of each, never plans and documents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sqlalchemy import Connection, delete, insert

from shoal.service.aggregator.plans import FrozenPlan
from shoal.service.aggregator.release import Document
from shoal.service.store import aggregator as store

COUNTS = ("totals", "merged", "withheld", "homogeneous", "reporters", "total")


def write(connection: Connection, document: Document, plan: FrozenPlan) -> None:
    """Store the rows of a release."""
    rows = [
        {"campaign": document.campaign, "number": document.round, **row}
        for row in summarise(document, plan)
    ]
    if rows:
        connection.execute(insert(store.summaries), rows)


def keep_estimates(connection: Connection, name: str, number: int, millionths: bytes) -> None:
    """Store what the learner believes of the arms before a round; the last ones count."""
    table = store.estimates
    connection.execute(delete(table).where(table.c.campaign == name, table.c.number == number))
    row = {"campaign": name, "number": number, "millionths": millionths}
    connection.execute(insert(table).values(row))


def summarise(document: Document, plan: FrozenPlan) -> list[dict[str, Any]]:
    """Return a row for each arm that someone plays, in their order."""
    users = np.bincount(plan.arms[plan.arms >= 0])
    grouped = plan.groups >= 0
    sizes = np.bincount(plan.groups[grouped])
    arm_of = np.zeros(len(sizes), np.int64)
    arm_of[plan.groups[grouped]] = plan.arms[grouped]
    released = np.zeros(len(sizes), bool)
    rows: dict[int, dict[str, Any]] = {}
    for arm in np.flatnonzero(users).tolist():
        arm_sizes = sizes[(arm_of == arm) & (sizes > 0)]
        rows[arm] = {
            "arm": arm,
            "users": int(users[arm]),
            "groups": len(arm_sizes),
            "smallest_group": int(arm_sizes.min()) if len(arm_sizes) else None,
            "smallest_total": None,
            **dict.fromkeys(COUNTS, 0),
        }
    for total in document.totals:
        released[list(total.parts)] = True
        row = rows[int(arm_of[total.parts[0]])]
        least = row["smallest_total"]
        row["smallest_total"] = total.reporters if least is None else min(least, total.reporters)
        row["totals"] += 1
        row["merged"] += len(total.parts) > 1
        if document.noise is None:
            row["homogeneous"] += total.total in (0, total.reporters * document.reward_steps)
        row["reporters"] += total.reporters
        row["total"] += total.total
    for arm in arm_of[(sizes > 0) & ~released].tolist():
        rows[arm]["withheld"] += 1
    return list(rows.values())
