"""How far campaigns were that are deleted."""

import sqlalchemy as sa
from alembic import op

revision = "l0004"
down_revision = "l0003"


def upgrade() -> None:
    """Make their table; of those that were deleted before, nothing is known."""
    op.create_table(
        "deleted_campaigns",
        sa.Column("campaign", sa.Text, primary_key=True),
        sa.Column("last_round", sa.Integer, nullable=False),
    )
