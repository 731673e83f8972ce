"""Migration 1: the first tables. `seaway.adapters.sqlalchemy.schema` creates those of a new database at once."""

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change nothing."""
