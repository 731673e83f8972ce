"""Migration 10: parent, share, guarantee, limit, order and backfill of queues."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def _word(length: int) -> sa.String:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns. Earlier queues are roots without guarantees and limits."""
    amounts = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
    for column in (
        sa.Column("parent", _word(255), nullable=False, server_default=""),
        sa.Column("weight", sa.Integer, nullable=False, server_default="1"),
        sa.Column("priority", sa.Integer, nullable=False, server_default="0"),
        sa.Column("guarantee", amounts, nullable=True),
        sa.Column("resource_limit", amounts, nullable=True),
        sa.Column("job_order", _word(16), nullable=False, server_default="fair"),
        sa.Column("backfill", _word(16), nullable=False, server_default="easy"),
    ):
        op.add_column("queues", column)
