"""Migration 29: archives with working directories of jobs, and their parts."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

TABLE: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}


def _name(name: str) -> sa.Column[str]:
    kind = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")
    return sa.Column(name, kind, nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "workdirs",
        _name("tenant"),
        _name("digest"),
        _number("size_bytes"),
        _name("secret"),
        _name("created_by"),
        _number("created_ns"),
        _number("used_ns"),
        sa.PrimaryKeyConstraint("tenant", "digest"),
        **TABLE,
    )
    op.create_table(
        "workdir_parts",
        _name("tenant"),
        _name("digest"),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("content", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False),
        _number("at_ns"),
        sa.PrimaryKeyConstraint("tenant", "digest", "number"),
        **TABLE,
    )
