"""Migration 30: last uses of tokens, and of identities of a provider."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def _name(name: str, length: int = 255) -> sa.Column[str]:
    kind = sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")
    return sa.Column(name, kind, nullable=False)


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "last_uses",
        _name("name"),
        _name("issuer"),
        _name("token_id", 16),
        _name("role", 16),
        _name("tenant"),
        _name("address"),
        sa.Column("used_ns", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", "issuer", "token_id"),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
