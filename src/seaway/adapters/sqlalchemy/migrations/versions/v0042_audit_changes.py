"""Migration 42: changed fields of audit entries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Earlier entries have no changes."""
    op.add_column("audit", sa.Column("changes", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=True))
