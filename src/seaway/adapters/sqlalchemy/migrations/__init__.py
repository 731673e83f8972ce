"""Schema migrations; `env.py` is Alembic's."""
