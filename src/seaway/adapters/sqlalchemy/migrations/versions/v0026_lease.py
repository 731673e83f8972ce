"""Migration 26: ends of leases of jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Earlier jobs have no lease."""
    op.add_column("jobs", sa.Column("expires_ns", sa.BigInteger, nullable=True))
