"""Migration 5: trained policies in the database."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TABLE: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}


def _name(name: str) -> sa.Column[str]:
    kind = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")
    return sa.Column(name, kind, nullable=False)


def upgrade() -> None:
    """Add the table."""
    content = sa.Column("content", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False)
    at_ns = sa.Column("at_ns", sa.BigInteger, nullable=False)
    names = (_name("name"), _name("digest"), content, _name("actor"), at_ns, sa.PrimaryKeyConstraint("name"))
    op.create_table("policies", *names, **TABLE)
