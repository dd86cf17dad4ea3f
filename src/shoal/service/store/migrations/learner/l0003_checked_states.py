"""States with a version and a digest, and the request to learn a campaign again."""

import sqlalchemy as sa
from alembic import op

revision = "l0003"
down_revision = "l0002"


def upgrade() -> None:
    """Add columns; those of rows that are there stay empty."""
    op.add_column("runs", sa.Column("feedback_digest", sa.LargeBinary))
    op.add_column("runs", sa.Column("relearn", sa.Integer, nullable=False, server_default="0"))
    op.add_column("policies", sa.Column("version", sa.Integer))
    op.add_column("policies", sa.Column("digest", sa.LargeBinary))
