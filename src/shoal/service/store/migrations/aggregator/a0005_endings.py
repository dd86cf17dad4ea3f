"""Campaigns that are archived or deleted."""

import sqlalchemy as sa
from alembic import op

revision = "a0005"
down_revision = "a0004"


def upgrade() -> None:
    """Add how and when a campaign ended."""
    op.add_column("campaigns", sa.Column("ending", sa.Text))
    op.add_column("campaigns", sa.Column("ended_at", sa.BigInteger))
