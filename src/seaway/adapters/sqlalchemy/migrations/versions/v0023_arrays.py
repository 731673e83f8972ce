"""Migration 23: arrays of jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

INDEXES = {
    "ix_jobs_tenant": ["tenant", "state", "id"],
    "ix_jobs_queue": ["queue", "state", "id"],
    "ix_jobs_submitted_by": ["submitted_by", "id"],
    "ix_jobs_name": ["name", "id"],
}


def upgrade() -> None:
    """Add the columns, and put the array first in indexes for lists. Earlier jobs are not tasks."""
    op.add_column("jobs", sa.Column("array_id", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("unstarted", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=True))
    op.create_index("ix_jobs_array", "jobs", ["array_id", "state", "id"])
    for name, columns in INDEXES.items():
        op.drop_index(name, "jobs")
        op.create_index(name, "jobs", ["array_id", *columns])
