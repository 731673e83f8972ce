"""Migration 22: link of a job to its standby."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Earlier jobs have no standby."""
    text = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
    op.add_column("jobs", sa.Column("pair", text, nullable=True))
