"""The schema of version 0.1, the first that was released."""

import sqlalchemy as sa
from alembic import op

revision = "l0002"
down_revision = None


def upgrade() -> None:
    """Make both tables."""
    op.create_table(
        "runs",
        sa.Column("campaign", sa.Text, primary_key=True),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("planned", sa.Integer, nullable=False),
        sa.Column("learnt", sa.Integer, nullable=False),
        sa.Column("feedback", sa.LargeBinary, nullable=False),
        sa.Column("reading", sa.Integer, nullable=False, server_default="0"),
    )
    op.create_table(
        "policies",
        sa.Column("campaign", sa.Text, sa.ForeignKey("runs.campaign"), primary_key=True),
        sa.Column("state", sa.LargeBinary, nullable=False),
    )
