"""Migration 9: taints and node labels that queues allow."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. Earlier queues allow none; jobs that they accepted stay."""
    for name in ("allowed_taints", "allowed_node_labels"):
        kind = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
        op.add_column("queues", sa.Column(name, kind, nullable=True))
