"""Migration 36: tries and waits of comparisons of shadow policies."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. They are 0 for earlier comparisons, whose jobs count once for each try."""
    op.add_column("shadows", sa.Column("tries", sa.Integer, nullable=False, server_default="0"))
    for name in ("live_wait_ms", "shadow_wait_ms"):
        op.add_column("shadows", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))
