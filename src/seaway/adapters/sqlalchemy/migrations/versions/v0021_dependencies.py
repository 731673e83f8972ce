"""Migration 21: predecessors of jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column and the table. Earlier jobs have no predecessors."""
    op.add_column("jobs", sa.Column("awaits", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=True))
    op.create_table(
        "job_predecessors",
        sa.Column("predecessor", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("job_id", sa.BigInteger, nullable=False, autoincrement=False),
        sa.PrimaryKeyConstraint("predecessor", "job_id"),
        sqlite_with_rowid=False,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
    op.create_index("ix_job_predecessors_job", "job_predecessors", ["job_id"])
