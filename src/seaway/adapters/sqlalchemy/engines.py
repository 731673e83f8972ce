"""Databases by their URL, and how each is talked to."""

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
"""By a URL's scheme: what SQLAlchemy calls it, the module it needs, and the extra that brings it."""

WAIT_S = 5
"""How long to wait for a connection or another process's lock, seconds."""


@dataclass(frozen=True, slots=True)
class Engines:
    """Two ways to one database.

    Attributes
    ----------
    write
        One connection, in transactions.
    read
        Several connections; each statement is a transaction of its own.
    """

    write: Engine
    read: Engine

    def dispose(self) -> None:
        """Close every connection."""
        self.write.dispose()
        self.read.dispose()


def read_url(text: str) -> URL:
    """Check a database's URL and name the driver.

    Raises
    ------
    RejectedError
        When it is none, names a database that Seaway does not know, or the driver is not installed.
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
    """Make ready to talk to a database; nothing is said yet.

    Parameters
    ----------
    text
        Its URL.
    readers
        How many threads may read at once.
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
    """Return a connection that sees the database as it is now until the end, and does not block anybody."""
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
    """Return what a driver is told about connections."""
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
    """Have every connection to SQLite keep a log that survives a crash and that readers do not wait for."""

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: object) -> None:  # noqa: ANN401  # the driver's own
        connection.isolation_level = None
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -65536", "temp_store = MEMORY"):
            connection.execute(f"PRAGMA {pragma}").close()


def _begin_immediate(connection: Connection) -> None:
    """Take SQLite's lock for writing at once: taking it later may fail half-way."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")
