"""Migration 31: history of the use of clusters, tenants and queues."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

NAMES = {"kind": 16, "name": 255, "tenant": 255}
NUMBERS = ("running", "waiting", "longest_wait_s", "started", "waited_s")


def _name(name: str, length: int) -> sa.Column[str]:
    kind = sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")
    return sa.Column(name, kind, nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "usage_samples",
        sa.Column("step_s", sa.Integer, nullable=False),
        _number("at_ns"),
        *(_name(name, length) for name, length in NAMES.items()),
        sa.Column("samples", sa.Integer, nullable=False),
        _number("gpu_milli"),
        _number("gpu_milli_used"),
        sa.Column("measured", sa.Integer, nullable=False),
        _number("gpu_milli_measured"),
        *(_number(name) for name in NUMBERS),
        sa.PrimaryKeyConstraint("step_s", "at_ns", *NAMES),
        sqlite_with_rowid=False,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
