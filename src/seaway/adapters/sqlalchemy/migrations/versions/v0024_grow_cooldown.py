"""Migration 24: time of queues between resizes of elastic jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Earlier queues get the default."""
    op.add_column("queues", sa.Column("grow_cooldown_s", sa.Integer, nullable=False, server_default="60"))
