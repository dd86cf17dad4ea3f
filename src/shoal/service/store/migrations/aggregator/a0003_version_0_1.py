"""The schema of version 0.1, the first that was released."""

import sqlalchemy as sa
from alembic import op

revision = "a0003"
down_revision = None

ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make every table."""
    op.create_table("keys", sa.Column("fingerprint", sa.LargeBinary, primary_key=True))
    op.create_table(
        "tokens",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "sessions",
        sa.Column("digest", sa.LargeBinary, primary_key=True),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("token_digest", sa.LargeBinary, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    _make_campaigns()
    _make_rounds()
    _make_pages()


def _campaign() -> sa.Column[str]:
    return sa.Column("campaign", sa.Text, sa.ForeignKey("campaigns.name"), primary_key=True)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, primary_key=True, autoincrement=False)


def _make_campaigns() -> None:
    op.create_table(
        "campaigns",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("roster", sa.Integer, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "arms",
        _campaign(),
        _number("slot"),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("since", sa.Integer, nullable=False),
        sa.Column("until", sa.Integer),
        sa.UniqueConstraint("campaign", "name"),
    )
    op.create_table(
        "seats",
        _campaign(),
        _number("seat"),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.UniqueConstraint("campaign", "user_id"),
    )


def _make_rounds() -> None:
    op.create_table(
        "rounds",
        sa.Column("id", ROW_ID, primary_key=True),
        sa.Column("campaign", sa.Text, sa.ForeignKey("campaigns.name"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("plan_hash", sa.Text),
        *(sa.Column(name, sa.LargeBinary) for name in ("arms", "groups")),
        sa.Column("wanted_at", sa.BigInteger, nullable=False),
        *(sa.Column(name, sa.BigInteger) for name in ("opened_at", "closed_at")),
        sa.UniqueConstraint("campaign", "number"),
    )
    op.create_table(
        "reports",
        sa.Column("round_id", ROW_ID, sa.ForeignKey("rounds.id"), primary_key=True),
        _number("seat"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sums",
        sa.Column("round_id", ROW_ID, sa.ForeignKey("rounds.id"), primary_key=True),
        _number("group_number"),
        sa.Column("reporters", sa.Integer, nullable=False),
        sa.Column("salt", sa.LargeBinary, nullable=False),
        sa.Column("blinded", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    columns = ("document", "reporters", "counted")
    op.create_table(
        "releases",
        sa.Column(
            "round_id", ROW_ID, sa.ForeignKey("rounds.id"), primary_key=True, autoincrement=False
        ),
        *(sa.Column(name, sa.LargeBinary, nullable=False) for name in columns),
    )


def _make_pages() -> None:
    """Make what the dashboard shows."""
    counts = {
        "users": False, "groups": False, "smallest_group": True, "totals": False,
        "smallest_total": True, "merged": False, "withheld": False, "homogeneous": False,
        "reporters": False,
    }  # fmt: skip
    op.create_table(
        "summaries",
        _campaign(),
        _number("number"),
        _number("arm"),
        *(sa.Column(name, sa.Integer, nullable=missing) for name, missing in counts.items()),
        sa.Column("total", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "estimates",
        _campaign(),
        _number("number"),
        sa.Column("millionths", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "checks",
        _campaign(),
        sa.Column("rule", sa.Text, primary_key=True),
        sa.Column("ran_at", sa.BigInteger, nullable=False),
        sa.Column("rounds", sa.Integer, nullable=False),
        sa.Column("fault", sa.Text, nullable=False),
    )
