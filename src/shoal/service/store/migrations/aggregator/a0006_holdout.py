"""Users who are held out, and notes at rounds."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "a0006"
down_revision = "a0005"

_COUNTS = ("merged", "withheld", "homogeneous", "reporters")


def upgrade() -> None:
    """Add who is held out, the summaries of their totals, notes, and when rounds were released."""
    op.add_column("campaigns", sa.Column("holdout", sa.LargeBinary))
    op.create_table(
        "holdout_summaries",
        _campaign(),
        *(_key(name) for name in ("number", "block")),
        *(_count(name) for name in ("arm", "users", "groups")),
        sa.Column("smallest_group", sa.Integer),
        _count("totals"),
        sa.Column("smallest_total", sa.Integer),
        *(_count(name) for name in _COUNTS),
        sa.Column("total", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "notes",
        _campaign(),
        _key("id"),
        _count("number"),
        sa.Column("at", sa.BigInteger, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("author", "text")),
    )
    op.create_table(
        "release_times",
        _campaign(),
        _key("number"),
        sa.Column("at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.execute(
        "INSERT INTO release_times (campaign, number, at) SELECT campaign, number, closed_at "
        "FROM rounds WHERE state = 'released' AND closed_at IS NOT NULL"
    )


def _campaign() -> sa.Column[Any]:
    return sa.Column("campaign", sa.Text, sa.ForeignKey("campaigns.name"), primary_key=True)


def _key(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer, primary_key=True, autoincrement=False)


def _count(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer, nullable=False)
