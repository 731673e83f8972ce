"""Migration 12: amounts that attempts hold."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Earlier attempts count by the request of their job."""
    op.add_column(
        "attempts", sa.Column("amounts", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=True)
    )
