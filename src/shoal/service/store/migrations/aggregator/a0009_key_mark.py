"""Which file the key was in at the last start: a copy that was put back is another."""

import sqlalchemy as sa
from alembic import op

revision = "a0009"
down_revision = "a0008"


def upgrade() -> None:
    """Add what tells the key's file from a copy of it; none is known before the next start."""
    op.add_column("keys", sa.Column("mark", sa.Text))
