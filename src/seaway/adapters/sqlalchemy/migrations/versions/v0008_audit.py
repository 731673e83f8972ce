"""Migration 8: token, issuer and number of requests of audit entries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. The tokens of earlier entries are unknown."""
    kind = sa.String(255).with_variant(sa.String(255, collation="C"), "postgresql")
    for name in ("token_id", "issuer"):
        op.add_column("audit", sa.Column(name, kind, nullable=False, server_default=""))
    op.add_column("audit", sa.Column("requests", sa.Integer, nullable=False, server_default="1"))
