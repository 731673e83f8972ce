"""Migration 11: indexes for the removal of old rows."""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the indexes."""
    op.create_index("ix_audit_at", "audit", ["at_ns"])
    op.create_index("ix_idempotency_keys_created", "idempotency_keys", ["created_ns"])
    op.create_index("ix_shadows_at", "shadows", ["at_ns"])
