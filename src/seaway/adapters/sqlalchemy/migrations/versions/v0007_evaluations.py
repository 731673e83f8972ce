"""Migration 7: evaluations of policies."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TABLE: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}


def _name(name: str) -> sa.Column[str]:
    kind = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")
    return sa.Column(name, kind, nullable=False)


def upgrade() -> None:
    """Add the table."""
    rows = sa.Column("rows", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False)
    at_ns = sa.Column("at_ns", sa.BigInteger, nullable=False)
    key = sa.PrimaryKeyConstraint("name")
    op.create_table("evaluations", _name("name"), rows, _name("actor"), at_ns, key, **TABLE)
