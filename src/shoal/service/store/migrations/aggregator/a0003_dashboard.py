"""What the dashboard needs: a summary of each release, estimates, checks and sessions."""

import json

import numpy as np
import sqlalchemy as sa
from alembic import op

revision = "a0003"
down_revision = "a0002"


def upgrade() -> None:
    """Make the tables, and summarise what was released before."""
    summaries = op.create_table(
        "summaries",
        sa.Column("campaign", sa.Text, sa.ForeignKey("campaigns.name"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("arm", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("users", sa.Integer, nullable=False),
        sa.Column("groups", sa.Integer, nullable=False),
        sa.Column("smallest_group", sa.Integer),
        sa.Column("totals", sa.Integer, nullable=False),
        sa.Column("smallest_total", sa.Integer),
        sa.Column("merged", sa.Integer, nullable=False),
        sa.Column("withheld", sa.Integer, nullable=False),
        sa.Column("homogeneous", sa.Integer, nullable=False),
        sa.Column("reporters", sa.Integer, nullable=False),
        sa.Column("total", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "estimates",
        sa.Column("campaign", sa.Text, sa.ForeignKey("campaigns.name"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("millionths", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "checks",
        sa.Column("campaign", sa.Text, sa.ForeignKey("campaigns.name"), primary_key=True),
        sa.Column("rule", sa.Text, primary_key=True),
        sa.Column("ran_at", sa.BigInteger, nullable=False),
        sa.Column("rounds", sa.Integer, nullable=False),
        sa.Column("fault", sa.Text, nullable=False),
    )
    op.create_table(
        "sessions",
        sa.Column("digest", sa.LargeBinary, primary_key=True),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("token_digest", sa.LargeBinary, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    connection = op.get_bind()
    released = connection.execute(
        sa.text("SELECT rounds.id, campaign FROM rounds JOIN releases ON round_id = rounds.id")
    ).all()
    for round_id, campaign in released:
        rows = _summarise(connection, round_id, campaign)
        if rows:
            connection.execute(sa.insert(summaries), rows)


def _summarise(connection: sa.Connection, round_id: int, campaign: str) -> list[dict[str, object]]:
    """Return a round's rows; as it was done when this version was written."""
    row = connection.execute(
        sa.text(
            "SELECT arms, groups, document FROM rounds JOIN releases ON round_id = rounds.id "
            "WHERE rounds.id = :id"
        ),
        {"id": round_id},
    ).one()
    arms, groups = np.frombuffer(row.arms, np.int32), np.frombuffer(row.groups, np.int32)
    document = json.loads(row.document)
    sizes = np.bincount(groups[groups >= 0])
    arm_of = np.zeros(len(sizes), np.int64)
    arm_of[groups[groups >= 0]] = arms[groups >= 0]
    totals = document["totals"]
    told = {part for total in totals for part in total["parts"]}
    rows: list[dict[str, object]] = []
    for arm in np.unique(arms[arms >= 0]).tolist():
        own = np.flatnonzero((sizes > 0) & (arm_of == arm)).tolist()
        mine = [total for total in totals if arm_of[total["parts"][0]] == arm]
        full = document["reward_steps"]
        rows.append(
            {
                "campaign": campaign,
                "number": document["round"],
                "arm": arm,
                "users": int((arms == arm).sum()),
                "groups": len(own),
                "smallest_group": int(sizes[own].min()) if own else None,
                "totals": len(mine),
                "smallest_total": min((t["reporters"] for t in mine), default=None),
                "merged": sum(len(t["parts"]) > 1 for t in mine),
                "withheld": sum(group not in told for group in own),
                "homogeneous": sum(t["total"] in (0, t["reporters"] * full) for t in mine),
                "reporters": sum(t["reporters"] for t in mine),
                "total": sum(t["total"] for t in mine),
            }
        )
    return rows
