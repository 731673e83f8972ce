"""Migration 2: jobs are found by their whole name; pending commands lose two unused columns."""

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
