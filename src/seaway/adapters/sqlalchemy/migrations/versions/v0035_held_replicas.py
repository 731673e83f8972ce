"""Migration 35: number of replicas that a job holds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. It is 0 for earlier jobs until they are placed or resized."""
    op.add_column("jobs", sa.Column("held_replicas", sa.Integer, nullable=False, server_default="0"))
