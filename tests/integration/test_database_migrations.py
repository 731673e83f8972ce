"""A migration whose process is killed at any statement continues at the next start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Integer, MetaData, inspect

from seaway.adapters.sqlalchemy import schema
from seaway.adapters.sqlalchemy.engines import open_engines
from tests.integration.migration_runs import Migrations, Moment, Run, migrations
from tests.missing import skip_or_fail
from tests.servers.databases import Server, servers
from tests.servers.missing import MissingError

STARTS = [f"{at:04}" for at in range(int(schema.NEWEST) - 10, int(schema.NEWEST))]
"""Versions before the newest migrations. Older ones do not change, and are killed on the way from an empty database."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def give_server() -> Iterator[Callable[[str], Server]]:
    """Return a function that starts database servers."""
    with servers() as give:
        yield give


@pytest.fixture(scope="module")
def forks() -> Iterator[Migrations]:
    """Return the process that starts migrations."""
    with migrations() as found:
        yield found


@pytest.fixture
def new_database(kind: str, tmp_path: Path, give_server: Callable[[str], Server]) -> Callable[[], str]:
    """Return a function that creates empty databases."""
    if kind == "sqlite":
        return lambda: f"sqlite:///{tmp_path}/{len(list(tmp_path.iterdir()))}.sqlite3"
    try:
        return give_server(kind).new_database
    except MissingError as missing:
        skip_or_fail(missing)


def upgraded(url: str, version: str, versions: Path = schema.VERSIONS) -> str:
    """Migrate a database to a version, and add two rows to each table but the lease."""
    config = Config()
    config.set_main_option("script_location", str(Path(schema.__file__).parent / "migrations"))
    config.set_main_option("version_locations", str(versions))
    config.set_main_option("path_separator", "newline")
    engines = open_engines(url)
    if version:
        with engines.write.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, version)
            schema.JOURNAL.drop(connection, checkfirst=True)
            fill(connection)
    engines.dispose()
    return url


def fill(connection: Connection) -> None:
    """Add two rows to each table."""
    tables = MetaData()
    tables.reflect(connection)
    for table in tables.sorted_tables:
        if table.name in {"alembic_version", "lease"}:
            continue
        for row in (1, 2):
            values = {
                column.name: at * 10 + row if isinstance(column.type, Integer) else "@" * row + column.name
                for at, column in enumerate(table.columns)
            }
            if table.name == "shadows" and row == 1:
                values["shadow"] = "fgd"
            connection.execute(table.insert().values(values))


def content(url: str) -> dict[str, tuple[Any, list[Any]]]:
    """Return the tables of a database: definitions and rows."""
    engines = open_engines(url)
    found: dict[str, tuple[Any, list[Any]]] = {}
    with engines.read.connect() as connection:
        look = inspect(connection)
        for name in sorted(look.get_table_names()):
            rows = sorted(tuple(row) for row in connection.exec_driver_sql(f"SELECT * FROM {name}"))
            found[name] = (definition(connection, name), rows)
    engines.dispose()
    return found


def definition(connection: Connection, name: str) -> Any:  # noqa: ANN401  # depends on the kind of database
    """Return the columns, keys and indexes of a table."""
    if connection.dialect.name == "mysql":
        return connection.exec_driver_sql(f"SHOW CREATE TABLE {name}").one()[1]
    if connection.dialect.name == "sqlite":
        return connection.exec_driver_sql(f"SELECT sql FROM sqlite_master WHERE tbl_name = '{name}' ORDER BY sql").all()
    look = inspect(connection)
    keys = (look.get_pk_constraint(name), look.get_unique_constraints(name), sorted(look.get_indexes(name), key=str))
    return [{**each, "type": str(each["type"])} for each in look.get_columns(name)], keys


def copied(url: str, tables: dict[str, tuple[Any, list[Any]]]) -> str:
    """Create tables of MariaDB with rows, without migrations."""
    engines = open_engines(url)
    with engines.write.begin() as connection:
        for name, (created, rows) in tables.items():
            connection.exec_driver_sql(created)
            if rows:
                marks = ", ".join(["%s"] * len(rows[0]))
                connection.exec_driver_sql(f"INSERT INTO {name} VALUES ({marks})", rows)
    engines.dispose()
    return url


def version(url: str) -> str:
    """Return the schema version."""
    engines = open_engines(url)
    with engines.read.connect() as connection:
        found = schema.revision(connection)
    engines.dispose()
    return found


def position(url: str) -> tuple[str, Any]:
    """Return the schema version, and the number of executed statements of the next migration."""
    engines = open_engines(url)
    with engines.read.connect() as connection:
        there = inspect(connection).has_table(schema.JOURNAL.name)
        executed = connection.execute(schema.JOURNAL.select()).scalar() if there else None
        found = schema.revision(connection), executed
    engines.dispose()
    return found


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("kind", ["mariadb"])
def test_a_killed_migration_continues(
    new_database: Callable[[], str], forks: Migrations, tmp_path: Path, start: str
) -> None:
    """After a kill at any statement of a migration, whose answer is not read, the next start completes it.

    Tables and rows are those of a migration without a kill. Later migrations have their own runs.
    """
    following = f"{int(start) + 1:04}"
    for each in schema.VERSIONS.glob("v*.py"):
        if each.name[1:5] <= following:
            copy(each, tmp_path)
    only: dict[str, Any] = {"versions": str(tmp_path), "newest": following}
    whole = upgraded(new_database(), start)
    before = content(whole)
    forks.run(Run(whole, **only))
    expected = content(whole)
    at, killed = 0, True
    while killed:
        at += 1
        url = copied(new_database(), before)
        killed = forks.run(Run(url, at, Moment.SENT, **only))
        forks.run(Run(url, **only))
        assert content(url) == expected, f"killed at statement {at}"
    assert at > 1


@pytest.mark.parametrize("moment", [Moment.SENT, Moment.ANSWERED])
@pytest.mark.parametrize("kind", ["mariadb"])
def test_a_migration_that_is_killed_again_and_again_ends(
    new_database: Callable[[], str], forks: Migrations, moment: Moment
) -> None:
    """An empty database gets the same tables if every start is killed one statement later.

    Changes of rows are not stored before the next change of a table. Without progress, the next start is killed
    later.
    """
    whole, url = new_database(), new_database()
    forks.run(Run(whole))
    kills, at, before = 0, 2, position(url)
    while forks.run(Run(url, at, moment)):
        kills, after = kills + 1, position(url)
        at, before = (at + 1 if after == before else 2), after
    assert kills > 30
    assert content(url) == content(whole)


@pytest.mark.parametrize("start", ["", "0003"])
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_killed_migration_leaves_the_old_or_the_new_version(
    new_database: Callable[[], str], forks: Migrations, start: str
) -> None:
    """SQLite and PostgreSQL undo a migration whose process is killed, at any statement and before the commit.

    Every ninth statement is tried: the transaction is the same for all.
    """
    whole = upgraded(new_database(), start)
    old = content(whole)
    forks.run(Run(whole))
    expected = content(whole)
    at, killed = -8, True
    while killed:
        at += 9
        url = upgraded(new_database(), start)
        killed = forks.run(Run(url, at))
        assert content(url) == (old if killed else expected), f"killed at statement {at}"
        forks.run(Run(url, processes=2))
        assert content(url) == expected, f"killed at statement {at}"
    assert at > 20
    url = upgraded(new_database(), start)
    assert forks.run(Run(url, moment=Moment.COMMIT))
    assert content(url) == old
    forks.run(Run(url))
    assert content(url) == expected


FIRST = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "0001", None

def upgrade():
    op.create_table("counts", sa.Column("name", sa.String(20), primary_key=True), sa.Column("n", sa.Integer))
    op.create_table("other", sa.Column("name", sa.String(20), primary_key=True), sa.Column("n", sa.Integer))
    op.create_index("ix_n", "counts", ["n"])
    op.create_table("gone", sa.Column("name", sa.String(20), primary_key=True))
"""

SECOND = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "0002", "0001"

def upgrade():
    op.execute("UPDATE counts SET n = n + 1")
    op.drop_index("ix_n", "counts")
    op.execute("UPDATE counts SET n = n * 2")
    op.execute("INSERT INTO other (name, n) SELECT CONCAT(name, '+'), n FROM counts")
    op.rename_table("other", "others")
    with op.batch_alter_table("counts") as batch:
        batch.alter_column("n", new_column_name="number", existing_type=sa.Integer, type_=sa.BigInteger)
        batch.add_column(sa.Column("text", sa.String(9), server_default="a"))
        batch.create_unique_constraint("uq_text", ["number"])
    op.execute("UPDATE counts SET text = CONCAT(text, 'b')")
    op.create_check_constraint("ck", "counts", "number > 0")
    op.create_table("links", sa.Column("name", sa.String(20), primary_key=True), sa.Column("other", sa.String(20)))
    op.create_foreign_key("fk", "links", "counts", ["name"], ["name"])
    op.create_foreign_key("fk2", "links", "others", ["other"], ["name"])
    op.drop_constraint("fk2", "links", type_="foreignkey")
    op.drop_constraint("uq_text", "counts", type_="unique")
    op.drop_column("counts", "text")
    op.add_column("counts", sa.Column("text", sa.String(9), server_default="a"))
    op.execute("DELETE FROM others WHERE n > 25")
    op.drop_table("gone")
    op.create_table("gone", sa.Column("other", sa.String(20), primary_key=True))
"""


@pytest.mark.parametrize("moment", [Moment.SENT, Moment.ANSWERED])
@pytest.mark.parametrize("kind", ["mariadb"])
def test_each_operation_of_a_migration_runs_once(
    new_database: Callable[[], str], forks: Migrations, tmp_path: Path, moment: Moment
) -> None:
    """Changes of rows never run twice, and every operation of Alembic can be interrupted.

    Two servers that start together after the kill complete the migration once.
    """
    (tmp_path / "v1.py").write_text(FIRST)
    (tmp_path / "v2.py").write_text(SECOND)
    rest: dict[str, Any] = {"versions": str(tmp_path), "newest": "0002"}
    whole = upgraded(new_database(), "0001", tmp_path)
    before = content(whole)
    forks.run(Run(whole, **rest))
    expected = content(whole)
    at, killed = 0, True
    while killed:
        at += 1
        url = copied(new_database(), before)
        killed = forks.run(Run(url, at, moment, **rest))
        forks.run(Run(url, processes=2, **rest))
        assert content(url) == expected, f"killed at statement {at}"
    assert at > 15
