"""Migration 41: last reports of clusters, and firing alerts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "cluster_reports",
        sa.Column("cluster", _short(255), nullable=False),
        sa.Column("state", _short(16), nullable=False),
        sa.Column("reason", _long(), nullable=False),
        sa.Column("reported_ns", sa.BigInteger, nullable=False),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("cluster"),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
    op.create_table(
        "cluster_inventories",
        sa.Column("cluster", _short(255), nullable=False),
        sa.Column("inventory", _long(), nullable=False),
        sa.PrimaryKeyConstraint("cluster"),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
    op.create_table(
        "firing_alerts",
        sa.Column("name", _short(63), nullable=False),
        sa.Column("of", _short(600), nullable=False),
        sa.Column("since_ns", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", "of"),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )


def _short(length: int) -> sa.types.TypeEngine[str]:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def _long() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
