"""Migration 4: the network between gateways: its specification, its agents, and the active paths."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLE: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}

COLUMNS = "at_ns, source, target, latency_ns, jitter_ns, loss_ppm, bandwidth_mbps, used_mbps"


def _name(name: str, default: str | None = None) -> sa.Column[str]:
    kind = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")
    return sa.Column(name, kind, nullable=False, server_default=default)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False)


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def _id(name: str) -> sa.Column[int]:
    kind = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    return sa.Column(name, kind, nullable=False, autoincrement=False)


def upgrade() -> None:
    """Add tables and columns, and allow link samples without latency."""
    tail = (_name("actor"), _number("at_ns"), _id("id"), sa.PrimaryKeyConstraint("id"))
    op.create_table("network", _text("text"), _number("version"), *tail, **TABLE)
    moments = map(_number, ("started_ns", "number", "at_ns"))
    counts = map(_number, ("reports", "rounds", "dropped", "discarded"))
    key = sa.PrimaryKeyConstraint("gateway")
    op.create_table("agents", _name("gateway"), *moments, _name("address"), *counts, key, **TABLE)
    ends = (_name("source"), _name("target"))
    active = (_name("active"), _number("active_ns"), _name("applied"), _number("applied_ns"), _text("why"))
    op.create_table("paths", *ends, *active, sa.PrimaryKeyConstraint("source", "target"), **TABLE)
    op.add_column("tokens", _name("gateway", ""))
    if op.get_bind().dialect.name == "sqlite":
        _create_link_samples_again()
        return
    op.add_column("link_samples", _name("path", ""))
    op.alter_column("link_samples", "latency_ns", existing_type=sa.BigInteger, nullable=True)


def _create_link_samples_again() -> None:
    """Create the table again and copy its rows, because SQLite cannot change an existing column."""
    op.drop_index("ix_link_samples_ends", "link_samples")
    op.rename_table("link_samples", "old_link_samples")
    op.create_table(
        "link_samples",
        _id("at_ns"),
        _name("source"),
        _name("target"),
        _number("latency_ns", nullable=True),
        _number("jitter_ns"),
        sa.Column("loss_ppm", sa.Integer, nullable=False),
        _number("bandwidth_mbps"),
        _number("used_mbps"),
        _name("path", ""),
        sa.PrimaryKeyConstraint("at_ns", "source", "target"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_link_samples_ends", "link_samples", ["source", "target", "at_ns"])
    op.execute(f"INSERT INTO link_samples ({COLUMNS}) SELECT {COLUMNS} FROM old_link_samples")
    op.drop_table("old_link_samples")
