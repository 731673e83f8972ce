"""Migration 2: index for jobs by their full name; removal of two unused columns of pending commands."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add an index on names, and drop two columns."""
    op.create_index("ix_jobs_name", "jobs", ["name", "id"])
    op.drop_column("outgoing", "tries")
    op.drop_column("outgoing", "error")
