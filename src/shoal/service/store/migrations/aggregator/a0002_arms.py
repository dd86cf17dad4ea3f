"""Arms that come and go, and the fingerprint of the key that blinds the sums."""

import json

import sqlalchemy as sa
from alembic import op

revision = "a0002"
down_revision = "a0001"


def upgrade() -> None:
    """Make both tables; until now, a campaign had the arms that it was made with."""
    arms = op.create_table(
        "arms",
        sa.Column("campaign", sa.Text, sa.ForeignKey("campaigns.name"), primary_key=True),
        sa.Column("slot", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("since", sa.Integer, nullable=False),
        sa.Column("until", sa.Integer),
        sa.UniqueConstraint("campaign", "name"),
    )
    op.create_table("keys", sa.Column("fingerprint", sa.LargeBinary, primary_key=True))
    found = op.get_bind().execute(sa.text("SELECT name, definition FROM campaigns")).all()
    for campaign, definition in found:
        names = json.loads(definition)["arms"]
        rows = [
            {"campaign": campaign, "slot": slot, "name": name, "since": 1}
            for slot, name in enumerate(names)
        ]
        op.bulk_insert(arms, rows)
