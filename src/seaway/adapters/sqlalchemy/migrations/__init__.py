"""How the tables came to be, step by step; `env.py` is Alembic's."""
