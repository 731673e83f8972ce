"""Schema migrations; `env.py` belongs to Alembic."""
