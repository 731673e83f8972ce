"""Migrations of MySQL and MariaDB that continue where an earlier process was interrupted.

These databases commit before and after each statement that changes a table, so a migration is not a transaction. A
journal counts the executed statements of the current migration. A count is stored in one transaction with a statement
that changes rows, so such a statement never runs twice. The count of a statement that changes a table is stored after
it. So the first statement after an interruption may have been executed already. A second execution then changes nothing
or fails because of the first.
"""

from __future__ import annotations

import re
from typing import Any

from alembic.ddl.mysql import MySQLImpl
from sqlalchemy import Delete, Insert, Update, insert, inspect, select, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import ExecutableDDLElement

from seaway.adapters.sqlalchemy.schema import JOURNAL, VERSION
from seaway.domain.errors import InvariantError

EXECUTED = {
    1050,  # the table exists
    1051,  # the table to drop does not exist
    1054,  # the column to rename does not exist
    1060,  # the column exists
    1061,  # the index exists
    1068,  # the primary key exists
    1091,  # the column, index or key to drop does not exist
    1146,  # the table to rename does not exist
    1826,  # the foreign key exists, in MySQL
    3822,  # the check constraint exists
}
"""Error codes of a statement that was executed before."""

CANNOT_CREATE = 1005
"""Error code of MariaDB, also for a foreign key that exists. The message then has the error number 121."""

CHANGES_TABLES = re.compile(r"\s*(alter|create|drop|rename|truncate)\b", re.IGNORECASE)


class ResumableImpl(MySQLImpl):
    """Alembic's statements for MySQL and MariaDB, without those that an interrupted migration already executed."""

    __dialect__ = "mysql"

    def start_migrations(self) -> None:
        """Read the journal, or create it."""
        super().start_migrations()
        assert self.connection is not None
        self._in_doubt = inspect(self.connection).has_table(JOURNAL.name)
        JOURNAL.create(self.connection, checkfirst=True)
        executed = self.connection.execute(select(JOURNAL.c.statements)).scalar()
        if executed is None:
            self.connection.execute(insert(JOURNAL).values(statements=0))
        self._executed = executed or 0
        self._count = 0

    def _exec(self, construct: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # Alembic's own
        """Execute a statement, unless the journal contains it."""
        if isinstance(construct, Insert | Update | Delete) and str(construct.table) == VERSION.name:
            result = super()._exec(construct, *args, **kwargs)
            self._count = self._executed = 0
            self._note(0)
            return result
        self._count += 1
        if self._count <= self._executed:
            return None
        _require_kind(construct)
        result = self._execute(construct, *args, **kwargs)
        self._note(self._count)
        return result

    def _execute(self, construct: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # Alembic's own
        """Execute a statement. If it is in doubt, it may have been executed before."""
        try:
            return super()._exec(construct, *args, **kwargs)
        except DBAPIError as error:
            if self._in_doubt and isinstance(construct, ExecutableDDLElement) and _was_executed(error):
                return None
            raise

    def _note(self, count: int) -> None:
        """Write the count. The commit before the next change of a table, or the final one, stores it."""
        assert self.connection is not None
        self.connection.execute(update(JOURNAL).values(statements=count))
        self._in_doubt = False


def _was_executed(error: DBAPIError) -> bool:
    """Report whether a change of a table failed because of an earlier execution."""
    code, message = error.orig.args[:2] if error.orig else (0, "")
    return code in EXECUTED or (code == CANNOT_CREATE and "errno: 121 " in message)


def _require_kind(construct: Any) -> None:  # noqa: ANN401  # Alembic's own
    """Check that a change of a table is one of Alembic's operations. A text is counted like a change of rows."""
    if not isinstance(construct, ExecutableDDLElement) and CHANGES_TABLES.match(str(construct)):
        raise InvariantError(f"a migration changes a table by a text; use an operation of Alembic: {construct}")
