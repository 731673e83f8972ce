"""Definitions of tables as texts, to compare databases of one kind."""

from __future__ import annotations

import re

from sqlalchemy import Connection

COLUMNS = """
SELECT column_name, data_type, character_maximum_length, collation_name, is_nullable, column_default
FROM information_schema.columns WHERE table_name = '{}' ORDER BY column_name"""
CONSTRAINTS = "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '{}'::regclass ORDER BY 1"
INDEXES = "SELECT indexdef FROM pg_indexes WHERE tablename = '{}' ORDER BY 1"


def definition(connection: Connection, name: str) -> list[str]:
    """Return the columns, keys and indexes of a table. Their order does not count: a migration adds them at the end."""
    if connection.dialect.name == "postgresql":
        texts = (each.format(name) for each in (COLUMNS, CONSTRAINTS, INDEXES))
        return [str(row) for text in texts for row in connection.exec_driver_sql(text)]
    if connection.dialect.name == "mysql":
        return _parts(connection.exec_driver_sql(f"SHOW CREATE TABLE {name}").one()[1])
    rows = connection.exec_driver_sql(f"SELECT sql FROM sqlite_master WHERE tbl_name = '{name}' AND sql IS NOT NULL")
    return sorted(part for (sql,) in rows for part in (_parts(sql) if sql.startswith("CREATE TABLE") else [sql]))


def _parts(statement: str) -> list[str]:
    """Return the parts of a statement that creates a table, in alphabetical order."""
    head, _, rest = " ".join(statement.split()).partition("(")
    body, _, options = rest.rpartition(")")
    return sorted([head, *(part.strip() for part in re.split(r",(?![^(]*\))", body)), options])
