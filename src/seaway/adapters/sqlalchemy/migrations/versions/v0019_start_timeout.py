"""Migration 19: time-out of queues for the start of jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Earlier queues get the default, so that held jobs no longer keep devices for ever."""
    op.add_column("queues", sa.Column("start_timeout_s", sa.Integer, nullable=False, server_default="3600"))
