"""Migration 17: facts of clusters that operators set."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

TABLE: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}


def _name(name: str) -> sa.Column[str]:
    kind = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")
    return sa.Column(name, kind, nullable=False)


def upgrade() -> None:
    """Add the table."""
    facts = sa.Column("facts", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False)
    number = sa.Column("at_ns", sa.BigInteger, nullable=False)
    key = sa.PrimaryKeyConstraint("cluster")
    op.create_table("cluster_facts", _name("cluster"), facts, _name("actor"), number, key, **TABLE)
