"""The learner's first schema."""

import sqlalchemy as sa
from alembic import op

revision = "l0001"
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
    )
    op.create_table(
        "policies",
        sa.Column("campaign", sa.Text, sa.ForeignKey("runs.campaign"), primary_key=True),
        sa.Column("state", sa.LargeBinary, nullable=False),
    )
