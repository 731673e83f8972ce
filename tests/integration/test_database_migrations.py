"""A migration whose process is killed at any statement continues at the next start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import Connection, Integer, MetaData, inspect

from seaway.adapters.sqlalchemy import schema
from seaway.adapters.sqlalchemy.engines import open_engines
from tests.integration.migration_runs import Migrations, Moment, Run, migrations
from tests.integration.table_definitions import definition
from tests.missing import skip_or_fail
from tests.servers.databases import Server, servers
from tests.servers.missing import MissingError

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


def upgraded(url: str, version: str, versions: Path) -> str:
    """Run made-up migrations up to a version, and add two rows to each table."""
    engines = open_engines(url)
    with engines.write.begin() as connection:
        command.upgrade(schema.alembic_config(connection, versions), version)
        schema.JOURNAL.drop(connection, checkfirst=True)
        fill(connection)
    engines.dispose()
    return url


def fill(connection: Connection) -> None:
    """Add two rows to each table."""
    tables = MetaData()
    tables.reflect(connection)
    for table in tables.sorted_tables:
        if table.name == schema.VERSION.name:
            continue
        for row in (1, 2):
            values = {
                column.name: at * 10 + row if isinstance(column.type, Integer) else "@" * row + column.name
                for at, column in enumerate(table.columns)
            }
            connection.execute(table.insert().values(values))


def content(url: str) -> dict[str, tuple[Any, list[Any]]]:
    """Return the tables of a database: definitions, which create those of MariaDB, and rows."""
    engines = open_engines(url)
    found: dict[str, tuple[Any, list[Any]]] = {}
    with engines.read.connect() as connection:
        look = inspect(connection)
        for name in sorted(look.get_table_names()):
            rows = sorted(tuple(row) for row in connection.exec_driver_sql(f"SELECT * FROM {name}"))
            mysql = connection.dialect.name == "mysql"
            created = connection.exec_driver_sql(f"SHOW CREATE TABLE {name}").one()[1] if mysql else ""
            found[name] = (created or definition(connection, name), rows)
    engines.dispose()
    return found


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


@pytest.mark.parametrize("moment", [Moment.SENT, Moment.ANSWERED])
@pytest.mark.parametrize("kind", ["mariadb"])
def test_a_first_start_that_is_killed_again_and_again_ends(
    new_database: Callable[[], str], forks: Migrations, moment: Moment
) -> None:
    """An empty database gets all tables, indexes and rows if every start is killed at its third statement.

    In the end, two servers that start together find nothing to do.
    """
    whole, url = new_database(), new_database()
    forks.run(Run(whole, processes=2))
    kills = 0
    while forks.run(Run(url, 3, moment)):
        kills += 1
    assert kills > 20
    forks.run(Run(url, processes=2))
    assert content(url) == content(whole)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_killed_first_start_leaves_an_empty_database(new_database: Callable[[], str], forks: Migrations) -> None:
    """SQLite and PostgreSQL undo the creation of tables, at any statement and before the commit.

    Every ninth statement is tried: the transaction is the same for all.
    """
    killed_at_any_statement(new_database, forks, 9)


LATER = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "0002", "0001"

def upgrade():
    op.execute("UPDATE counts SET n = n + 1")
    op.drop_index("ix_n", "counts")
    op.rename_table("other", "others")
    op.add_column("counts", sa.Column("text", sa.String(9), server_default="a"))
    op.execute("DELETE FROM others WHERE n > 25")
    op.drop_table("gone")
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_killed_migration_leaves_the_old_or_the_new_version(
    new_database: Callable[[], str], forks: Migrations, tmp_path: Path
) -> None:
    """SQLite and PostgreSQL undo a migration whose process is killed, at any statement and before the commit."""
    versions = tmp_path / "versions"
    versions.mkdir()
    (versions / "v1.py").write_text(FIRST)
    (versions / "v2.py").write_text(LATER)
    older = lambda: upgraded(new_database(), "0001", versions)  # noqa: E731
    killed_at_any_statement(older, forks, 1, versions=str(versions), newest="0002")


def killed_at_any_statement(
    new_database: Callable[[], str],
    forks: Migrations,
    step: int,
    **rest: Any,  # noqa: ANN401  # fields of a run
) -> None:
    """Kill starts at every statement in steps; check that each leaves the old or the new version, and the next ends."""
    whole = new_database()
    old = content(whole)
    forks.run(Run(whole, **rest))
    expected = content(whole)
    at, killed = 1 - step, True
    while killed:
        at += step
        url = new_database()
        killed = forks.run(Run(url, at, **rest))
        assert content(url) == (old if killed else expected), f"killed at statement {at}"
        forks.run(Run(url, processes=2, **rest))
        assert content(url) == expected, f"killed at statement {at}"
    assert at > 5
    url = new_database()
    assert forks.run(Run(url, moment=Moment.COMMIT, **rest))
    assert content(url) == old
    forks.run(Run(url, **rest))
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
