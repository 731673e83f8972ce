"""Migration 20: replicas of jobs that completed in earlier attempts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Earlier jobs completed all replicas in one attempt."""
    op.add_column("jobs", sa.Column("completed", sa.Integer, nullable=False, server_default="0"))
