"""Environment for Alembic, inside the transaction that `seaway.adapters.sqlalchemy.schema` began."""

from alembic import context

import seaway.adapters.sqlalchemy.migrations.resumable  # noqa: F401  # registers itself with Alembic
from seaway.adapters.sqlalchemy.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA, render_as_batch=True)
context.run_migrations()
