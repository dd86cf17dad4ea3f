"""Which release the learner may have read, on record before it reads."""

import sqlalchemy as sa
from alembic import op

revision = "l0002"
down_revision = "l0001"


def upgrade() -> None:
    """Add a column; whatever was learnt had been read."""
    op.add_column("runs", sa.Column("reading", sa.Integer, nullable=False, server_default="0"))
    op.execute("UPDATE runs SET reading = learnt")
