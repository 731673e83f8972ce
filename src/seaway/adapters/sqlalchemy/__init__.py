"""Store in SQLite, MariaDB, MySQL or PostgreSQL; see docs/database.md and ADR 7."""

from seaway.adapters.sqlalchemy.backups import backup, restore
from seaway.adapters.sqlalchemy.maintenance import check
from seaway.adapters.sqlalchemy.schema import current, migrate
from seaway.adapters.sqlalchemy.store import SqlStore, open_store

__all__ = ["SqlStore", "backup", "check", "current", "migrate", "open_store", "restore"]
