"""Migration 25: notifications and their messages."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

TABLE: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}


def _name(name: str, length: int = 255) -> sa.Column[str]:
    kind = sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")
    return sa.Column(name, kind, nullable=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "notifications",
        _name("tenant"),
        _name("name"),
        _name("channel", 16),
        _text("url"),
        _text("addresses"),
        _text("sealed"),
        _text("on_occasions"),
        _name("queue"),
        _name("job"),
        _count("wait_limit_s"),
        _name("created_by"),
        _number("changed_ns"),
        sa.PrimaryKeyConstraint("tenant", "name"),
        **TABLE,
    )
    op.create_table(
        "deliveries",
        _name("id"),
        _name("tenant"),
        _name("receiver"),
        _number("job_id"),
        _name("job_name"),
        _name("occasion", 16),
        _text("body"),
        _number("created_ns"),
        _number("next_ns"),
        _count("tries"),
        _name("state", 16),
        _text("error"),
        sa.PrimaryKeyConstraint("id"),
        **TABLE,
    )
    op.create_index("ix_deliveries_receiver", "deliveries", ["tenant", "receiver", "state"])
    op.create_table(
        "notifier",
        _number("event"),
        _number("waits_ns"),
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False, autoincrement=False),
        sa.PrimaryKeyConstraint("id"),
        **TABLE,
    )
