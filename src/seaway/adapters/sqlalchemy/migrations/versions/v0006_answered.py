"""Of comparisons, how many jobs the challenger decided itself."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; of trained challengers it is not known what they decided, and heuristics decide all."""
    for name in ("answered", "fallbacks"):
        op.add_column("shadows", sa.Column(name, sa.Integer, nullable=False, server_default="0"))
    op.execute("UPDATE shadows SET answered = jobs WHERE shadow NOT LIKE '%@%'")
