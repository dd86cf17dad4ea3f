"""Reports without a look-up of their round each; sums that PostgreSQL writes in place."""

from alembic import op

revision = "a0008"
down_revision = "a0007"


def upgrade() -> None:
    """Let the lock on a round's row be what says that it exists; keep room beside each block."""
    name = "reports_round_id_fkey"
    with op.batch_alter_table(
        "reports", naming_convention={"fk": name}, table_kwargs={"sqlite_with_rowid": False}
    ) as reports:
        reports.drop_constraint(name, type_="foreignkey")
    if op.get_context().dialect.name == "postgresql":
        op.execute(
            "ALTER TABLE sum_blocks ALTER reporters SET STORAGE PLAIN, "
            "ALTER blinded SET STORAGE PLAIN, SET (fillfactor = 50)"
        )
