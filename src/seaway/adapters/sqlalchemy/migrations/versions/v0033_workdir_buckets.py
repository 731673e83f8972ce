"""Migration 33: archives with working directories in buckets."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Earlier archives are in the database."""
    kind = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")
    op.add_column("workdirs", sa.Column("bucket", kind, nullable=False, server_default=""))
