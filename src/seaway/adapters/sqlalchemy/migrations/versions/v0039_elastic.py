"""Migration 39: queues whose elastic jobs keep the replicas beyond their minimum."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Earlier queues get the default."""
    word = sa.String(16).with_variant(sa.String(16, collation="C"), "postgresql")
    op.add_column("queues", sa.Column("elastic", word, nullable=False, server_default="lend"))
