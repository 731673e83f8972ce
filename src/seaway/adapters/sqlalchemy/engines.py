"""Database engines by URL, with the settings of each database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.reasons import Reason

DRIVERS = {
    "sqlite": ("sqlite", "sqlite3", ""),
    "mysql": ("mysql+pymysql", "pymysql", "mysql"),
    "mariadb": ("mysql+pymysql", "pymysql", "mysql"),
    "postgresql": ("postgresql+psycopg", "psycopg", "postgres"),
    "postgres": ("postgresql+psycopg", "psycopg", "postgres"),
}
"""Driver name in SQLAlchemy, required module, and the extra that installs it, by URL scheme."""

WRITERS = 5
"""Maximum number of connections for transactions. One stays open."""

WRITER_CACHE_KIB, READER_CACHE_KIB = 32_768, 8192
"""Maximum size of SQLite's page cache of a connection. With 8 threads that read and two connections for each, a process
caches at most 5 x 32 + 16 x 8 = 288 MiB.
"""

WAIT_S = 5
"""Timeout for a connection, or for a lock of another process, in seconds."""


@dataclass(frozen=True, slots=True)
class Engines:
    """Engines of one database.

    Attributes
    ----------
    write
        Engine with one connection and transactions.
    read
        Engine with several connections; each statement is a transaction.
    """

    write: Engine
    read: Engine

    def dispose(self) -> None:
        """Close all connections."""
        self.write.dispose()
        self.read.dispose()


def read_url(text: str) -> URL:
    """Check the URL of a database, and add the driver.

    Raises
    ------
    RejectedError
        When the URL is invalid, the kind of database is not supported, or the driver is not installed.
    """
    known = "use sqlite:///path, mysql://user:password@host/name or postgresql://user:password@host/name"
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise RejectedError(f"this is not a URL of a database: {known}", where="database") from None
    scheme = url.drivername.partition("+")[0]
    if scheme not in DRIVERS:
        raise RejectedError(f"Seaway does not know databases called {scheme!r}: {known}", where="database")
    name, module, extra = DRIVERS[scheme]
    if find_spec(module) is None:
        raise RejectedError(f"{scheme} needs a driver: pip install 'seaway[{extra}]'", where="database")
    if not url.database or url.database == ":memory:":
        raise RejectedError(f"the URL names no database: {known}", where="database")
    return url.set(drivername=name)


def open_engines(text: str, readers: int = 8) -> Engines:
    """Create the engines of a database, without connecting.

    Parameters
    ----------
    text
        URL of the database.
    readers
        Number of threads that can read concurrently.
    """
    url = read_url(text)
    options: dict[str, Any] = {"hide_parameters": True, "pool_timeout": WAIT_S, "connect_args": _arguments(url)}
    if url.get_backend_name() != "sqlite":
        options |= {"pool_pre_ping": True, "pool_recycle": 3600}
    level = "SERIALIZABLE" if url.get_backend_name() == "sqlite" else "READ COMMITTED"
    write = create_engine(url, pool_size=1, max_overflow=WRITERS - 1, isolation_level=level, **options)
    read = create_engine(
        url, pool_size=readers, max_overflow=readers, isolation_level="AUTOCOMMIT", pool_reset_on_return=None, **options
    )
    if url.get_backend_name() == "sqlite":
        Path(url.database or "").expanduser().parent.mkdir(parents=True, exist_ok=True)
        _tune(write, WRITER_CACHE_KIB)
        _tune(read, READER_CACHE_KIB)
        event.listen(write, "begin", _begin_immediate)
    return Engines(write, read)


@contextmanager
def snapshot(engines: Engines) -> Iterator[Connection]:
    """Return a connection with a consistent view of the database that does not block other processes."""
    with engines.read.connect() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN")
            try:
                yield connection
            finally:
                connection.exec_driver_sql("ROLLBACK")
        else:
            connection = connection.execution_options(isolation_level="REPEATABLE READ")  # noqa: PLW2901
            with connection.begin():
                yield connection


def _arguments(url: URL) -> dict[str, Any]:
    """Return the connection arguments of a driver."""
    kind = url.get_backend_name()
    if kind == "sqlite":
        return {"timeout": WAIT_S, "check_same_thread": False, "cached_statements": 512}
    if kind == "mysql":
        setup = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION,NO_ZERO_DATE', "
        setup += f"SESSION innodb_lock_wait_timeout = {WAIT_S}"
        return {
            "charset": "utf8mb4",
            "collation": "utf8mb4_bin",
            "connect_timeout": WAIT_S,
            "read_timeout": 60,
            "write_timeout": 60,
            "init_command": setup,
        }
    return {"connect_timeout": WAIT_S, "options": f"-c lock_timeout={WAIT_S}s -c client_encoding=UTF8"}


def _tune(engine: Engine, cache_kib: int) -> None:
    """Configure SQLite connections: a durable write-ahead log, which does not block readers."""
    pragmas = ("journal_mode = WAL", "synchronous = FULL", f"cache_size = -{cache_kib}", "temp_store = MEMORY")

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: object) -> None:  # noqa: ANN401  # the driver's own
        connection.isolation_level = None
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}").close()


def _begin_immediate(connection: Connection) -> None:
    """Acquire SQLite's write lock at the start of a transaction, because a later acquisition may fail."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")


SQLITE_AWAY = {
    5: Reason("database_locked"),
    6: Reason("database_locked"),
    8: Reason("database_read_only"),
    10: Reason("disk_fails"),
    11: Reason("database_damaged"),
    13: Reason("disk_full"),
    14: Reason("database_not_opened"),
    23: Reason("database_forbidden"),
    26: Reason("no_database"),
}
"""Messages for primary result codes of SQLite that mean unavailability."""

SQLITE_UNIQUE = {1555, 2067, 2579}
"""Extended result codes of SQLite for violations: primary key, unique, row ID."""

MYSQL_AWAY = {
    **dict.fromkeys((3, 14, 1021, 1026, 1030, 1114, 1135, 1037, 1041), Reason("database_full")),
    **dict.fromkeys((1205, 1213, 1206, 3572), Reason("database_busy")),
    **dict.fromkeys((1036, 1290, 1792, 1836), Reason("database_read_only")),
    **dict.fromkeys((1040, 1203, 1226), Reason("connections_full")),
    **dict.fromkeys((1044, 1045, 1698, 1049), Reason("database_refuses")),
    **dict.fromkeys(
        (0, 1047, 1053, 1077, 1079, 1080, 1152, 1158, 1159, 1160, 1161, 1184, 1317, 1927, 1969),
        Reason("connection_closed"),
    ),
    **dict.fromkeys((2000, 2002, 2003, 2005, 2006, 2013, 2014, 2026, 2055, 4031), Reason("database_silent")),
}
MYSQL_UNREACHABLE = {2002, 2003, 2005}
"""Errors of connections whose text names the host and the cause."""

MYSQL_UNIQUE = 1062

POSTGRES_AWAY = {
    "08": Reason("database_silent"),
    "25006": Reason("database_read_only"),
    "28": Reason("database_refuses"),
    "3D": Reason("database_refuses"),
    "40": Reason("database_busy"),
    "53100": Reason("disk_full"),
    "53": Reason("database_full"),
    "55P03": Reason("database_busy"),
    "57": Reason("connection_closed"),
    "58": Reason("disk_fails"),
    "XX001": Reason("database_damaged"),
}
"""Messages for prefixes of PostgreSQL's error codes; the first match is used."""
POSTGRES_UNIQUE = "23505"

DEADLOCKS = {("pymysql", 1213), ("psycopg", "40001"), ("psycopg", "40P01")}


@contextmanager
def answering() -> Iterator[None]:
    """Convert errors of an unavailable database to `UnavailableError`. Other errors are bugs and pass unchanged.

    Raises
    ------
    UnavailableError
        When the database does not answer, is full, or is read-only.
    """
    try:
        yield
    except PoolTimeoutError as error:
        raise UnavailableError(Reason("connections_in_use")) from error
    except DBAPIError as error:
        reason = away(error)
        if reason is None:
            raise
        raise UnavailableError(reason) from error


def away(error: DBAPIError) -> Reason | None:
    """Return the reason why the database is unavailable; None if the statement itself is wrong."""
    driver, code = _cause(error)
    if driver == "sqlite3":
        return SQLITE_AWAY.get(code & 0xFF)
    if driver == "pymysql" and code in MYSQL_UNREACHABLE:
        return _unreachable(error)
    if error.connection_invalidated:
        return Reason("database_silent")
    if driver == "pymysql":
        return MYSQL_AWAY.get(code)
    if not code:  # connection errors have no code
        return _unreachable(error) if isinstance(error, OperationalError | InterfaceError) else None
    return next((reason for start, reason in POSTGRES_AWAY.items() if code.startswith(start)), None)


def _unreachable(error: DBAPIError) -> Reason:
    """Return the reason of a failed connection, with the host and the cause that the driver names."""
    cause: Any = error.orig
    said = str(cause.args[-1]) if cause is not None and cause.args else str(cause)
    first = next(iter(said.strip().splitlines()), "")
    return Reason("database_silent_why", why=first[:200]) if first else Reason("database_silent")


def refuses(error: DBAPIError) -> bool:
    """Report whether a statement failed because a row exists already."""
    driver, code = _cause(error)
    return code in {"sqlite3": SQLITE_UNIQUE, "pymysql": {MYSQL_UNIQUE}}.get(driver, {POSTGRES_UNIQUE})


def passes(error: DBAPIError) -> bool:
    """Report whether a retry may succeed, as after a deadlock."""
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
