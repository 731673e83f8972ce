"""Migration 3: permanent names of clusters."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLE: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}


def _name(name: str) -> sa.Column[str]:
    kind = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")
    return sa.Column(name, kind, nullable=False)


def upgrade() -> None:
    """Add the table."""
    names = (_name("name"), _name("uid"), _name("server"), sa.PrimaryKeyConstraint("name"))
    op.create_table("cluster_names", *names, **TABLE)
