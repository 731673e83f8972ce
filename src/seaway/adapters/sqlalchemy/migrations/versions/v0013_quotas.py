"""Migration 13: weights and quotas of tenants."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. Earlier tenants have the weight 1 and no quotas."""
    op.add_column("tenants", sa.Column("weight", sa.Integer, nullable=False, server_default="1"))
    op.add_column("tenants", sa.Column("quotas", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=True))
