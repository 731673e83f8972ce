"""Migration 6: number of jobs that the challenger of a comparison decided itself."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. Heuristics decided all jobs; for trained challengers, the number is unknown."""
    for name in ("answered", "fallbacks"):
        op.add_column("shadows", sa.Column(name, sa.Integer, nullable=False, server_default="0"))
    op.execute("UPDATE shadows SET answered = jobs WHERE shadow NOT LIKE '%@%'")
