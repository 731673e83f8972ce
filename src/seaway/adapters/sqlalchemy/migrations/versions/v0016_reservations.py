"""Migration 16: advance reservations."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

TABLE: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}


def _name(name: str) -> sa.Column[str]:
    kind = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")
    return sa.Column(name, kind, nullable=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False)


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "reservations",
        _name("name"),
        sa.Column("starts_ns", sa.BigInteger, nullable=False),
        sa.Column("ends_ns", sa.BigInteger, nullable=False),
        _name("tenant"),
        _name("queue"),
        sa.Column("gpus", sa.Integer, nullable=False),
        _text("gpu_model"),
        _text("clusters"),
        _text("nodes"),
        sa.Column("drain", sa.Integer, nullable=False),
        _text("description"),
        sa.PrimaryKeyConstraint("name"),
        **TABLE,
    )
