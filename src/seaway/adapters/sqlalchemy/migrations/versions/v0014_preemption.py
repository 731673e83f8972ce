"""Migration 14: preemption and reclaim of queues."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def _word(length: int) -> sa.String:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns. Earlier queues take back their guarantees, and displace no jobs by priority."""
    for column in (
        sa.Column("preemption", _word(32), nullable=False, server_default="Never"),
        sa.Column("reclaim", _word(16), nullable=False, server_default="Guarantee"),
        sa.Column("preemptible", sa.Integer, nullable=False, server_default="1"),
        sa.Column("min_runtime_s", sa.Integer, nullable=False, server_default="0"),
    ):
        op.add_column("queues", column)
