"""Schema version of the tables, and migrations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.exc import OperationalError

from seaway.adapters.sqlalchemy.engines import answering, open_engines
from seaway.adapters.sqlalchemy.tables import LEASE, METADATA
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.reasons import Reason

if TYPE_CHECKING:
    from alembic.config import Config

NEWEST = "0001"
"""Schema version after all migrations; versions increase."""

VERSION = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own table, with the schema version in one row."""

UNRELEASED = "outgoing"
"""Table that only databases from before the first release have."""

VERSIONS = Path(__file__).parent / "migrations" / "versions"

JOURNAL = Table("migration_journal", MetaData(), Column("statements", Integer, nullable=False), mysql_engine="InnoDB")
"""Journal of an unfinished migration of MySQL or MariaDB; see `seaway.adapters.sqlalchemy.migrations.resumable`."""

LOCK = 7_310_867
"""Number of PostgreSQL's advisory lock for migrations. It only has to be unique."""

LOCK_WAIT_S = 60

BEING_CHANGED = 1684
"""Error code of MariaDB: another connection is changing the table."""


def current(url: str) -> str:
    """Return the schema version of a database; empty without Seaway's tables.

    Raises
    ------
    RejectedError
        When the URL is invalid, or the tables are from before the first release.
    UnavailableError
        When the database does not answer.
    """
    engines = open_engines(url)
    try:
        with answering(), engines.read.connect() as connection:
            return revision(connection)
    finally:
        engines.dispose()


def migrate(url: str) -> str:
    """Create the tables of a database, or migrate them to the newest schema version; return the previous version.

    Raises
    ------
    RejectedError
        When the URL is invalid, or the tables are newer than this Seaway or from before the first release.
    UnavailableError
        When the database does not answer.
    """
    engines = open_engines(url)
    try:
        with answering():
            return bring_up(engines.write)
    finally:
        engines.dispose()


def bring_up(engine: Engine) -> str:
    """Create the tables, or migrate them to the newest schema version; return the previous version."""
    with engine.connect() as connection:
        before = require_known(revision(connection))
        if before == NEWEST and not _has_journal(connection):
            return before
    with engine.begin() as connection, _alone(connection):
        before = require_known(revision(connection))
        if not before:
            _create(connection)
        elif before != NEWEST:
            _upgrade(connection)
        if _has_journal(connection):
            JOURNAL.drop(connection)
    return before


def revision(connection: Connection) -> str:
    """Return the schema version of the tables; empty if there are none.

    Raises
    ------
    RejectedError
        When the tables are from before the first release.
    """
    look = inspect(connection)
    if not look.has_table(VERSION.name):
        return ""
    if look.has_table(UNRELEASED):
        raise RejectedError(Reason("before_first_release"), where="database")
    return str(connection.execute(select(VERSION.c.version_num)).scalar() or "")


def require_known(found: str) -> str:
    """Check that this Seaway supports a schema version.

    Raises
    ------
    RejectedError
        When it is newer than this Seaway.
    """
    if found > NEWEST:
        raise RejectedError(
            f"the database is at state {found} of a newer Seaway, this one knows {NEWEST}: install the newer "
            "Seaway again, or restore a backup from before it",
            where="database",
        )
    return found


def _has_journal(connection: Connection) -> bool:
    """Report whether the database has a journal, or another process is creating or removing it."""
    if connection.dialect.name != "mysql":
        return False
    try:
        return inspect(connection).has_table(JOURNAL.name)
    except OperationalError as error:
        if error.orig and error.orig.args[0] == BEING_CHANGED:
            return True
        raise


def _create(connection: Connection) -> None:
    """Create all tables at the newest version. MySQL and MariaDB commit each; the next start creates missing ones."""
    again = connection.dialect.name == "mysql" and not _begin_journal(connection)
    for table in (*METADATA.sorted_tables, VERSION):
        table.create(connection, checkfirst=again)
        for index in table.indexes if again else ():
            index.create(connection, checkfirst=True)
    connection.execute(insert(LEASE).values(id=1, epoch=0, owner=""))
    connection.execute(insert(VERSION).values(version_num=NEWEST))


def _begin_journal(connection: Connection) -> bool:
    """Create the journal; return False if it exists, because an earlier process was interrupted."""
    if _has_journal(connection):
        return False
    JOURNAL.create(connection)
    return True


def _upgrade(connection: Connection) -> None:
    """Run the missing migrations."""
    from alembic import command

    command.upgrade(alembic_config(connection, VERSIONS), "head")


def alembic_config(connection: Connection, versions: Path) -> Config:
    """Return the configuration with which Alembic runs the migrations of a folder."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("version_locations", str(versions).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.attributes["connection"] = connection
    return config


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """Prevent concurrent migrations by other processes. SQLite's transactions prevent them without a lock."""
    kind = connection.dialect.name
    if kind == "postgresql":
        connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'"))
        connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
    if kind != "mysql":
        yield
        return
    if not connection.execute(text(f"SELECT GET_LOCK('seaway', {LOCK_WAIT_S})")).scalar():
        raise UnavailableError("another process is migrating the database", retry_after_s=LOCK_WAIT_S)
    try:
        yield
    finally:
        connection.execute(text("SELECT RELEASE_LOCK('seaway')"))
