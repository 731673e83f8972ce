"""Migration 27: Secrets that the jobs of a tenant may use."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Earlier tenants may use none."""
    op.add_column(
        "tenants", sa.Column("secrets", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=True)
    )
