"""The sums of many groups in one row."""

import sqlalchemy as sa
from alembic import op

revision = "a0007"
down_revision = "a0006"

ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Add the blocks; what was summed before stays where it is until its round ends."""
    op.create_table(
        "sum_blocks",
        sa.Column("round_id", ROW_ID, sa.ForeignKey("rounds.id"), primary_key=True),
        sa.Column("block", sa.Integer, primary_key=True, autoincrement=False),
        *(
            sa.Column(name, sa.LargeBinary, nullable=False)
            for name in ("salt", "reporters", "blinded")
        ),
        sqlite_with_rowid=False,
    )
