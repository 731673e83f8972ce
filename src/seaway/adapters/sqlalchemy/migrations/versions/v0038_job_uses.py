"""Migration 38: measured use of the GPUs of jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "job_uses",
        sa.Column("job_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False, autoincrement=False),
        sa.Column("content", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False),
        sa.PrimaryKeyConstraint("job_id"),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
