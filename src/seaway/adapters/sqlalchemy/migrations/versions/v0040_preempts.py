"""Migration 40: queues in which jobs are displaced by priority."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Earlier queues displace jobs by priority in all queues, as new ones do."""
    word = sa.String(16).with_variant(sa.String(16, collation="C"), "postgresql")
    op.add_column("queues", sa.Column("preempts", word, nullable=False, server_default="all"))
