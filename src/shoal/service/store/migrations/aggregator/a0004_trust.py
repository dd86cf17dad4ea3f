"""Tokens with a scope and an end, the audit log, the one source of reports, rounds' secrets."""

import sqlalchemy as sa
from alembic import op

revision = "a0004"
down_revision = "a0003"

_APPEND_ONLY = {
    "sqlite": [
        f"CREATE TRIGGER audit_{verb} BEFORE {verb} ON audit "
        "BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
        for verb in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        "CREATE OR REPLACE FUNCTION shoal_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$",
        "CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit "
        "FOR EACH STATEMENT EXECUTE FUNCTION shoal_append_only()",
    ],
}


def upgrade() -> None:
    """Add columns to what there is, and the audit log."""
    op.add_column("keys", sa.Column("boot", sa.Text))
    scope = sa.Column("campaigns", sa.Text, nullable=False, server_default='["*"]')
    op.add_column("tokens", scope)
    for name in ("created_at", "expires_at", "last_used", "former_until"):
        op.add_column("tokens", sa.Column(name, sa.BigInteger))
    op.add_column("tokens", sa.Column("succeeds", sa.Text))
    op.add_column("tokens", sa.Column("former_digest", sa.LargeBinary))
    op.add_column("campaigns", sa.Column("source", sa.Text))
    op.add_column("rounds", sa.Column("contested", sa.Integer, nullable=False, server_default="0"))
    op.add_column("rounds", sa.Column("secret_mark", sa.Text))
    op.add_column("rounds", sa.Column("proposal", sa.Text))
    op.create_table(
        "audit",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("actor", "action")),
        sa.Column("campaign", sa.Text),
        sa.Column("details", sa.Text, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
    )
    for statement in _APPEND_ONLY[op.get_bind().dialect.name]:
        op.execute(statement)
