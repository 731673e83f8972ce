"""Migration 32: saved filters of users."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def _name(name: str) -> sa.Column[str]:
    kind = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")
    return sa.Column(name, kind, nullable=False)


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "saved_filters",
        _name("owner"),
        _name("name"),
        sa.Column("query", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False),
        sa.Column("changed_ns", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("owner", "name"),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
