"""Migration 37: jobs by state and end."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the index. On SQLite and PostgreSQL, it has only rows of jobs that ended."""
    ended = sa.text("ended_ns IS NOT NULL")
    columns = ["array_id", "state", "ended_ns", "id", "started_ns"]
    op.create_index("ix_jobs_ended", "jobs", columns, sqlite_where=ended, postgresql_where=ended)
