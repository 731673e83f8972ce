"""Backup and restore of databases. The target of a restore may be of another kind than the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, MetaData, Table, delete, func, inspect, select, update

from seaway.adapters.sqlalchemy.backup_file import BackupReader, BackupWriter, Header, Progress, TableRows, require_room
from seaway.adapters.sqlalchemy.codec import Row
from seaway.adapters.sqlalchemy.engines import Engines, answering, open_engines, snapshot
from seaway.adapters.sqlalchemy.schema import NEWEST, bring_up, current, require_known, revision
from seaway.adapters.sqlalchemy.statements import MOST, statement_writer
from seaway.adapters.sqlalchemy.tables import (
    LEASE,
    METADATA,
    POOLS,
    QUEUES,
    TENANTS,
    TOKENS,
    WORKDIR_PARTS,
    WORKDIRS,
)
from seaway.application.records import NS_PER_S
from seaway.domain.errors import RejectedError
from seaway.domain.tenancy import DEFAULT

EXCLUDED = (LEASE, WORKDIRS, WORKDIR_PARTS)
"""Tables that are in no backup, and that a restore leaves unchanged: the lease, which has no meaning for another
database, and archives of working directories, which are large and can be sent again."""

TABLES: dict[str, Table] = {table.name: table for table in METADATA.sorted_tables if table not in EXCLUDED}
"""Tables in a backup."""

DROPPED: dict[str, frozenset[str]] = {}
"""Columns that migrations dropped, by table. They are skipped in backups of older versions."""

SMALLER = 4
"""Minimum ratio of the size of a database to that of its backup, which is compressed and has no indexes."""

SIZES = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "mysql": "SELECT SUM(data_length) FROM information_schema.tables WHERE table_schema = DATABASE()",
    "postgresql": "SELECT pg_database_size(current_database())",
}
"""Query for the size of a database in bytes, by its kind."""


@dataclass(frozen=True, slots=True)
class Restored:
    """Result of a restore.

    Attributes
    ----------
    rows
        Number of rows by table.
    retained_revoked
        Number of tokens that are valid in the backup and were revoked in the database; they stay revoked.
    holding
        Names and IDs of the valid tokens.
    """

    rows: dict[str, int]
    retained_revoked: int
    holding: list[tuple[str, str]]


def backup(url: str, file: Path, now_ns: int, progress: Progress | None = None) -> dict[str, int]:
    """Write a consistent snapshot of a database to a file, without blocking other processes.

    The tables may be of an older version, so that a migration can have a backup before it.

    Parameters
    ----------
    url
        URL of the database.
    file
        Path of the backup; an existing file is replaced when the backup is complete.
    now_ns
        Current time for the header, nanoseconds since 1970.
    progress
        Called with the number of written rows and the total.

    Returns
    -------
    dict[str, int]
        Number of rows by table.

    Raises
    ------
    RejectedError
        When the tables are newer than this Seaway or from before the first release, the disk has no room, or the file
        cannot be written.
    UnavailableError
        When the database does not answer.
    """
    engines = open_engines(url)
    try:
        with answering(), snapshot(engines) as connection:
            state = require_known(revision(connection))
            if not state:
                raise RejectedError("it has no tables: start a server once, or run seaway db migrate")
            tables = TABLES if state == NEWEST else _older_tables(connection)
            require_room(file.absolute().parent, _size(connection, tables) // SMALLER)
            header = Header(state, now_ns, connection.dialect.name)
            return _write(connection, file, header, tables, progress or _quiet)
    except OSError as error:
        raise RejectedError(f"cannot be written: {error.strerror or error}", where=str(file)) from error
    finally:
        engines.dispose()


def restore(
    url: str, file: Path, *, force: bool = False, revoke_ns: int | None = None, progress: Progress | None = None
) -> Restored:
    """Replace the contents of a database by a backup. A process that writes to the database must stop.

    The whole file is verified first. The restore is one transaction: if it fails, the database stays unchanged. Tokens
    that were revoked in the database after the backup stay revoked.

    Parameters
    ----------
    url
        URL of the database; missing tables are created.
    file
        Backup of a database of any kind.
    force
        True to replace existing contents.
    revoke_ns
        Time at which all tokens of the backup are marked as revoked, nanoseconds since 1970; None to keep them valid.
    progress
        Called with the number of read bytes and the total; the file is read twice.

    Returns
    -------
    Restored
        The restored rows and tokens.

    Raises
    ------
    RejectedError
        When the file is damaged, is not a backup, or is newer than this Seaway or from before the first release, or
        the database is not empty.
    UnavailableError
        When the database does not answer or is full.
    """
    reader = BackupReader(file)
    if reader.header.schema > NEWEST:
        raise RejectedError(
            f"its tables are at state {reader.header.schema} of a newer Seaway: restore it with that", where=str(file)
        )
    reported = progress or _quiet
    for page in reader.pages(MOST, lambda done, of: reported(done, 2 * of)):
        _require_known(page.table, page.columns, file)
    engines = open_engines(url)
    try:
        with answering():
            bring_up(engines.write)
            return _load(engines, reader, force, revoke_ns, lambda done, of: reported(done + of, 2 * of))
    finally:
        engines.dispose()


def back_up_before(url: str, folder: Path, now_ns: int) -> Path | None:
    """Write a backup of a database whose tables are older than this Seaway; return its path, and None without one.

    Scheduled backups do not remove it.

    Raises
    ------
    RejectedError
        As `backup` does.
    UnavailableError
        When the database does not answer.
    """
    state = current(url)
    if state in ("", NEWEST):
        return None
    require_known(state)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / f"before-{NEWEST}-from-{state}-{now_ns // NS_PER_S}.backup"
    backup(url, file, now_ns)
    return file


def _older_tables(connection: Connection) -> dict[str, Table]:
    """Return the tables of an older version, with the columns that they have."""
    there = MetaData()
    names = set(inspect(connection).get_table_names())
    there.reflect(connection, only=[name for name in TABLES if name in names])
    return {name: there.tables[name] for name in TABLES if name in there.tables}


def _size(connection: Connection, tables: Mapping[str, Table]) -> int:
    """Return the approximate size of a database without archives, in bytes."""
    has_archives = tables is TABLES or inspect(connection).has_table(WORKDIRS.name)
    total = select(func.sum(WORKDIRS.c.size_bytes))
    archives = int(connection.execute(total).scalar() or 0) if has_archives else 0
    return max(0, int(connection.exec_driver_sql(SIZES[connection.dialect.name]).scalar() or 0) - archives * 4 // 3)


def _write(
    connection: Connection, file: Path, header: Header, tables: Mapping[str, Table], progress: Progress
) -> dict[str, int]:
    rows = {
        name: connection.execute(select(func.count()).select_from(table)).scalar_one() for name, table in tables.items()
    }
    total = sum(rows.values())
    done = 0
    with BackupWriter(file, header) as writer:
        for name, table in tables.items():

            def counted(table: Table = table) -> Iterator[Sequence[Any]]:
                nonlocal done
                for page in _pages(connection, table):
                    yield page
                    done += len(page)
                    progress(done, total)

            writer.table(name, [column.name for column in table.columns], counted())
    progress(total, total)
    return rows


def _pages(connection: Connection, table: Table) -> Iterator[Sequence[Any]]:
    """Read a table in pages, in the order of its key."""
    question = select(table).order_by(*table.primary_key.columns)
    result = connection.execution_options(stream_results=True, yield_per=1000).execute(question)
    yield from result.partitions()


def _load(engines: Engines, reader: BackupReader, force: bool, revoke_ns: int | None, progress: Progress) -> Restored:
    """Replace the contents of the database by those of a backup."""
    words = statement_writer(engines.write.dialect)
    loaded = dict.fromkeys(TABLES, 0)
    with engines.write.begin() as connection:
        connection.execute(update(LEASE).values(epoch=LEASE.c.epoch + 1, owner="restore"))
        if not force and (found := _first_filled(connection)):
            raise RejectedError(f"the database is not empty (it has {found}): use --force to replace it")
        ended = connection.execute(
            select(TOKENS.c.id, TOKENS.c.revoked_ns).where(TOKENS.c.revoked_ns.is_not(None))
        ).all()
        for table in TABLES.values():
            connection.execute(delete(table))
        for page in reader.pages(MOST, progress):
            if not page.rows:
                continue
            columns, rows = _stored(page)
            statement, values = words.insert(_only(TABLES[page.table], columns), rows)
            connection.exec_driver_sql(statement, values)
            loaded[page.table] += len(page.rows)
        kept = sum(_revoke(connection, revoked_ns, TOKENS.c.id == token) for token, revoked_ns in ended)
        if revoke_ns is not None:
            _revoke(connection, revoke_ns)
        holding = select(TOKENS.c.name, TOKENS.c.id).where(TOKENS.c.revoked_ns.is_(None)).order_by(TOKENS.c.created_ns)
        return Restored(loaded, kept, [(name, token) for name, token in connection.execute(holding)])


def _revoke(connection: Connection, at_ns: int, *which: ColumnElement[bool]) -> int:
    """Revoke valid tokens; return their number."""
    return connection.execute(
        update(TOKENS).where(TOKENS.c.revoked_ns.is_(None), *which).values(revoked_ns=at_ns)
    ).rowcount


def _first_filled(connection: Connection) -> str:
    """Return the name of a table that contains more than the default rows; empty if there is none."""
    for name, table in TABLES.items():
        question = select(1).select_from(table)
        if table in (TENANTS, POOLS, QUEUES):
            question = question.where(table.c.name != DEFAULT)
        if connection.execute(question.limit(1)).first() is not None:
            return name
    return ""


def _require_known(name: str, columns: Sequence[str], file: Path) -> None:
    """Check that a table and its columns exist."""
    table = TABLES.get(name)
    known = set(table.columns.keys()) | DROPPED.get(name, frozenset()) if table is not None else set()
    unknown = name if table is None else next((each for each in columns if each not in known), None)
    if unknown is not None:
        raise RejectedError(f"has {unknown!r}, which this version does not know", where=str(file))


def _stored(page: TableRows) -> tuple[Sequence[str], list[Row]]:
    """Return a page's columns and rows without dropped columns."""
    dropped = DROPPED.get(page.table, frozenset()) & set(page.columns)
    if not dropped:
        return page.columns, [tuple(row) for row in page.rows]
    places = [at for at, name in enumerate(page.columns) if name not in dropped]
    return [page.columns[at] for at in places], [tuple(row[at] for at in places) for row in page.rows]


def _only(table: Table, columns: Sequence[str]) -> Table:
    """Return a table with only the given columns. Backups of older versions lack newer columns."""
    if list(columns) == [column.name for column in table.columns]:
        return table
    kept = [column for column in table.columns if column.name in columns]
    kept.sort(key=lambda column: columns.index(column.name))
    return Table(table.name, MetaData(), *(Column(each.name, each.type, primary_key=each.primary_key) for each in kept))


def _quiet(_done: int, _total: int) -> None:
    """Ignore the reported progress."""
