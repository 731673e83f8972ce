"""Migration 18: options of the policies of queues."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Policies of earlier queues have no options."""
    text = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
    op.add_column("queues", sa.Column("policy_options", text, nullable=True))
