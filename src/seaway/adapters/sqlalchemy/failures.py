"""Classification of database errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from seaway.domain.errors import UnavailableError

SQLITE_AWAY = {
    5: "the database is locked by another process",
    6: "the database is locked by another process",
    8: "the database may not be written to",
    10: "the disk under the database fails",
    11: "the database is damaged: restore a backup",
    13: "the disk under the database is full",
    14: "the database cannot be opened",
    23: "the database may not be opened",
    26: "the file is not a database",
}
"""Messages for primary result codes of SQLite that mean unavailability."""

SQLITE_UNIQUE = {1555, 2067, 2579}
"""Extended result codes of SQLite: primary key, unique, row ID."""

MYSQL_AWAY = {
    **dict.fromkeys((3, 14, 1021, 1026, 1030, 1114, 1135, 1037, 1041), "the database has no room"),
    **dict.fromkeys((1205, 1213, 1206, 3572), "the database is busy with others' changes"),
    **dict.fromkeys((1036, 1290, 1792, 1836), "the database may not be written to"),
    **dict.fromkeys((1040, 1203, 1226), "the database accepts no more connections"),
    **dict.fromkeys((1044, 1045, 1698, 1049), "the database does not let Seaway in: check the URL"),
    **dict.fromkeys(
        (0, 1047, 1053, 1077, 1079, 1080, 1152, 1158, 1159, 1160, 1161, 1184, 1317, 1927, 1969),
        "the database closed the connection",
    ),
    **dict.fromkeys((2000, 2002, 2003, 2005, 2006, 2013, 2014, 2026, 2055, 4031), "the database does not answer"),
}
MYSQL_UNIQUE = 1062

POSTGRES_AWAY = {
    "08": "the database does not answer",
    "25006": "the database may not be written to",
    "28": "the database does not let Seaway in: check the URL",
    "3D": "the database does not let Seaway in: check the URL",
    "40": "the database is busy with others' changes",
    "53100": "the disk under the database is full",
    "53": "the database has no room",
    "55P03": "the database is busy with others' changes",
    "57": "the database closed the connection",
    "58": "the disk under the database fails",
    "XX001": "the database is damaged: restore a backup",
}
"""Messages for prefixes of PostgreSQL's error codes; the first match counts."""
POSTGRES_UNIQUE = "23505"

DEADLOCKS = {("pymysql", 1213), ("psycopg", "40001"), ("psycopg", "40P01")}


@contextmanager
def answering() -> Iterator[None]:
    """Convert errors of an unavailable database to `UnavailableError`; others are bugs and pass unchanged.

    Raises
    ------
    UnavailableError
        When the database does not answer, is full, or is read-only.
    """
    try:
        yield
    except PoolTimeoutError as error:
        raise UnavailableError("all connections to the database are in use") from error
    except DBAPIError as error:
        reason = away(error)
        if reason is None:
            raise
        raise UnavailableError(reason) from error


def away(error: DBAPIError) -> str | None:
    """Return the reason for unavailability; None if the statement itself is wrong."""
    driver, code = _cause(error)
    if driver == "sqlite3":
        return SQLITE_AWAY.get(code & 0xFF)
    if error.connection_invalidated:
        return "the database does not answer"
    if driver == "pymysql":
        return MYSQL_AWAY.get(code)
    if not code:  # connection errors have no code
        return "the database does not answer" if isinstance(error, OperationalError | InterfaceError) else None
    return next((reason for start, reason in POSTGRES_AWAY.items() if code.startswith(start)), None)


def refuses(error: DBAPIError) -> bool:
    """Report whether a row exists already."""
    driver, code = _cause(error)
    return code in {"sqlite3": SQLITE_UNIQUE, "pymysql": {MYSQL_UNIQUE}}.get(driver, {POSTGRES_UNIQUE})


def passes(error: DBAPIError) -> bool:
    """Report whether a retry may succeed, because of a deadlock."""
    return _cause(error) in DEADLOCKS


def _cause(error: DBAPIError) -> tuple[str, Any]:
    """Return the failed driver and its error code: a number, or for PostgreSQL a text of five characters or None."""
    cause: Any = error.orig
    driver = type(cause).__module__.partition(".")[0]
    if driver == "sqlite3":
        return driver, getattr(cause, "sqlite_errorcode", 0)
    if driver == "pymysql":
        return driver, cause.args[0] if cause.args else 0
    return driver, getattr(cause, "sqlstate", None)
