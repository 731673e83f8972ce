"""Database engines by URL, with the settings of each database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from seaway.domain.errors import RejectedError

DRIVERS = {
    "sqlite": ("sqlite", "sqlite3", ""),
    "mysql": ("mysql+pymysql", "pymysql", "mysql"),
    "mariadb": ("mysql+pymysql", "pymysql", "mysql"),
    "postgresql": ("postgresql+psycopg", "psycopg", "postgres"),
    "postgres": ("postgresql+psycopg", "psycopg", "postgres"),
}
"""Driver name in SQLAlchemy, required module, and extra that installs it, by URL scheme."""

WAIT_S = 5
"""Timeout for a connection or for another process's lock, in seconds."""


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
    write = create_engine(url, pool_size=1, max_overflow=4, isolation_level=level, **options)
    read = create_engine(
        url, pool_size=readers, max_overflow=readers, isolation_level="AUTOCOMMIT", pool_reset_on_return=None, **options
    )
    if url.get_backend_name() == "sqlite":
        Path(url.database or "").expanduser().parent.mkdir(parents=True, exist_ok=True)
        _tune(write)
        _tune(read)
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


def _tune(engine: Engine) -> None:
    """Configure SQLite connections: a durable write-ahead log, which does not block readers."""

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: object) -> None:  # noqa: ANN401  # the driver's own
        connection.isolation_level = None
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -65536", "temp_store = MEMORY"):
            connection.execute(f"PRAGMA {pragma}").close()


def _begin_immediate(connection: Connection) -> None:
    """Acquire SQLite's write lock at the start of a transaction: a later acquisition may fail."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")
