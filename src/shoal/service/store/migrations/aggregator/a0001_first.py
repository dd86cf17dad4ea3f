"""The aggregator's first schema."""

import sqlalchemy as sa
from alembic import op

revision = "a0001"
down_revision = None

ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make every table."""
    op.create_table(
        "tokens",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "campaigns",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("roster", sa.Integer, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "seats",
        sa.Column("campaign", sa.Text, sa.ForeignKey("campaigns.name"), primary_key=True),
        sa.Column("seat", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.UniqueConstraint("campaign", "user_id"),
    )
    op.create_table(
        "rounds",
        sa.Column("id", ROW_ID, primary_key=True),
        sa.Column("campaign", sa.Text, sa.ForeignKey("campaigns.name"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("plan_hash", sa.Text),
        sa.Column("arms", sa.LargeBinary),
        sa.Column("groups", sa.LargeBinary),
        sa.Column("wanted_at", sa.BigInteger, nullable=False),
        sa.Column("opened_at", sa.BigInteger),
        sa.Column("closed_at", sa.BigInteger),
        sa.UniqueConstraint("campaign", "number"),
    )
    op.create_table(
        "reports",
        sa.Column("round_id", ROW_ID, sa.ForeignKey("rounds.id"), primary_key=True),
        sa.Column("seat", sa.Integer, primary_key=True, autoincrement=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sums",
        sa.Column("round_id", ROW_ID, sa.ForeignKey("rounds.id"), primary_key=True),
        sa.Column("group_number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("reporters", sa.Integer, nullable=False),
        sa.Column("salt", sa.LargeBinary, nullable=False),
        sa.Column("blinded", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "releases",
        sa.Column(
            "round_id", ROW_ID, sa.ForeignKey("rounds.id"), primary_key=True, autoincrement=False
        ),
        sa.Column("document", sa.LargeBinary, nullable=False),
        sa.Column("reporters", sa.LargeBinary, nullable=False),
        sa.Column("counted", sa.LargeBinary, nullable=False),
    )
