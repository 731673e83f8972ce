"""Migration 34: acknowledgements of alerts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def _name(name: str, length: int) -> sa.Column[str]:
    kind = sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")
    return sa.Column(name, kind, nullable=False)


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "acknowledgements",
        _name("name", 63),
        _name("of", 600),
        _name("actor", 255),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", "of"),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
