"""Migration 15: ageing, borrowing and lending limits of queues; ended attempts by time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def _text() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    """Add the columns and the index. Earlier queues have none of these limits."""
    for column in (
        sa.Column("ageing_s", sa.Integer, nullable=False, server_default="0"),
        sa.Column("borrowing_limit", _text(), nullable=True),
        sa.Column("lending_limit", _text(), nullable=True),
    ):
        op.add_column("queues", column)
    op.create_index("ix_attempts_ended", "attempts", ["ended_ns", "job_id", "number"])
