"""Migration 28: recent numbers of replicas of jobs that wait to shrink."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "scale_windows",
        sa.Column("job_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False, autoincrement=False),
        sa.Column("replicas", sa.Integer, nullable=False),
        sa.Column("numbers", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False),
        sa.PrimaryKeyConstraint("job_id"),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
