"""The tables of each kind of database match the code."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from shutil import copy

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, event, inspect

from seaway.adapters import sqlalchemy as database
from seaway.adapters.sqlalchemy import backups, codec, maintenance, schema
from seaway.adapters.sqlalchemy import statements as job_queries
from seaway.adapters.sqlalchemy.backups import back_up_before
from seaway.adapters.sqlalchemy.engines import open_engines
from seaway.adapters.sqlalchemy.tables import METADATA
from seaway.application.changes import Change, Record
from seaway.application.ports.store import USAGE_STEPS_S, JobFilter, JobSort, Retention
from seaway.application.records import IdempotencyKey, PendingCommand, Verb
from seaway.domain import job_spec as ids
from seaway.domain.errors import RejectedError
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import JobState
from tests.fakes import records as make
from tests.integration.table_definitions import definition
from tests.missing import skip_or_fail
from tests.servers.databases import SERVERS, Server, servers
from tests.servers.missing import MissingError

RECORDED = Path(__file__).parents[1] / "data" / "schema"
"""Tables of the first version, by kind of database. They do not change; later versions have migrations."""

VERSIONED = (
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc "
    "PRIMARY KEY (version_num))",
    "INSERT INTO alembic_version VALUES ('0001')",
)

KINDS = ["sqlite", *(pytest.param(name, marks=pytest.mark.slow) for name in SERVERS)]


@pytest.fixture(scope="module")
def give_server() -> Iterator[Callable[[str], Server]]:
    """Return a function that starts database servers."""
    with servers() as give:
        yield give


@pytest.fixture
def new_database(kind: str, tmp_path: Path, give_server: Callable[[str], Server]) -> Callable[[], str]:
    """Return a function that creates empty databases."""
    if kind == "sqlite":
        names = iter(range(9))
        return lambda: f"sqlite:///{tmp_path}/store{next(names)}.sqlite3"
    try:
        return give_server(kind).new_database
    except MissingError as missing:
        skip_or_fail(missing)


@pytest.fixture
def url(new_database: Callable[[], str]) -> str:
    """Return the URL of an empty database."""
    return new_database()


def migrations() -> Config:
    """Return the configuration with which Alembic finds the migrations."""
    config = Config()
    config.set_main_option("script_location", str(Path(schema.__file__).parent / "migrations"))
    return config


LATER = """
import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT
revision, down_revision = "0002", "0001"

def short(length):
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")

def upgrade():
    op.add_column("audit", sa.Column("changes", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=True))
    op.create_table(
        "firing_alerts",
        sa.Column("name", short(63), nullable=False),
        sa.Column("of", short(600), nullable=False),
        sa.Column("since_ns", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", "of"),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
"""


@pytest.fixture
def older(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of a database without a table and a column, which a made-up second migration adds."""
    store = database.open_store(url)
    store.lead("me")
    store.commit([Change(insert=[make.audit_entry(changes=()), COMMAND])])
    store.close()
    execute(url, "DROP TABLE firing_alerts", "ALTER TABLE audit DROP COLUMN changes")
    versions = tmp_path / "versions"
    versions.mkdir()
    copy(schema.VERSIONS / "v0001_first.py", versions)
    (versions / "v0002_later.py").write_text(LATER)
    monkeypatch.setattr(schema, "VERSIONS", versions)
    for module in (schema, backups):
        monkeypatch.setattr(module, "NEWEST", "0002")
    return url


COMMAND = PendingCommand(ids.encode(1), 2, "c1", Verb.DELETE, 3)


def execute(url: str, *statements: str) -> None:
    """Execute statements in a database."""
    engines = open_engines(url)
    with engines.write.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engines.dispose()


def definitions(url: str) -> dict[str, list[str]]:
    """Return the definitions of all tables of a database."""
    engines = open_engines(url)
    with engines.read.connect() as connection:
        found = {name: definition(connection, name) for name in inspect(connection).get_table_names()}
    engines.dispose()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_migrations_make_the_tables_that_the_code_knows(kind: str, new_database: Callable[[], str]) -> None:
    """The first tables, as recorded, are after all migrations those of a new database, and of `tables.py`."""
    new, first = new_database(), new_database()
    assert database.current(new) == ""
    assert database.migrate(new) == ""
    assert database.migrate(new) == database.current(new) == schema.NEWEST
    assert {*definitions(new)} == {*METADATA.tables, schema.VERSION.name}
    statements = (RECORDED / f"{kind}.sql").read_text().removesuffix(";\n").split(";\n")
    execute(first, *statements, *VERSIONED)
    assert database.migrate(first) == "0001"
    assert definitions(first) == definitions(new)


@pytest.mark.parametrize("kind", KINDS)
def test_migrations_keep_what_is_stored(older: str, new_database: Callable[[], str]) -> None:
    """Rows from before a migration are there after it, and the tables are those of a new database."""
    assert database.migrate(older) == "0001"
    store = database.open_store(older)
    assert list(store.pending_commands()) == [COMMAND]
    assert [each.changes for each in store.audit(0, 9)] == [()]
    assert store.firing_alerts() == []
    store.close()
    new = new_database()
    database.migrate(new)
    assert definitions(older) == definitions(new)


@pytest.mark.parametrize("kind", KINDS)
def test_older_tables_have_a_backup_before_their_migration(
    older: str, new_database: Callable[[], str], tmp_path: Path
) -> None:
    """The backup has what the older tables have, it can be restored, and newest or missing tables need none."""
    new, other = new_database(), f"sqlite:///{tmp_path}/other.sqlite3"
    assert back_up_before(new, tmp_path, 10**9) is None
    with pytest.raises(RejectedError, match="has no tables"):
        database.backup(new, tmp_path / "none.backup", 1)
    file = back_up_before(older, tmp_path / "backups", 10**9)
    assert file == tmp_path / "backups" / "before-0002-from-0001-1.backup"
    database.migrate(older)
    assert back_up_before(older, tmp_path, 10**9) is None
    assert database.restore(other, file).rows["audit"] == 1
    store = database.open_store(other)
    assert list(store.pending_commands()) == [COMMAND]
    store.close()


def test_a_job_is_found_by_its_name_through_an_index(tmp_path: Path) -> None:
    """However many jobs there are, the latest of a name is read from an index, in the requested order."""
    url = f"sqlite:///{tmp_path}/store.sqlite3"
    database.migrate(url)
    engines = open_engines(url)
    for wanted in (JobFilter(named="a"), JobFilter(named="a", tenant="t")):
        question = job_queries.page(wanted, 1).compile(engines.read, compile_kwargs={"literal_binds": True})
        with engines.read.connect() as connection:
            steps = [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {question}")]
        assert "SEARCH jobs USING INDEX ix_jobs_name (array_id=? AND name=?)" in steps, steps
        assert not any("SCAN jobs" in step for step in steps), steps
    engines.dispose()


@pytest.mark.parametrize("kind", KINDS)
def test_jobs_are_counted_and_sorted_by_their_end_through_an_index(url: str) -> None:
    """The failed jobs of a day and a page by end are read from an index; on SQLite a page by duration, too."""
    store = database.open_store(url)
    store.lead("me")
    states = [JobState.FAILED, JobState.COMPLETED, JobState.RUNNING]
    rows: list[Record] = [
        make.job_record(
            id=ids.encode(1 + at),
            state=states[at % 3],
            started_ns=at,
            ended_ns=2 * at if states[at % 3].final else None,
        )
        for at in range(1200)
    ]
    store.commit([Change(insert=rows)])
    store.close()
    engines = open_engines(url)
    failed = JobFilter(states=frozenset({JobState.FAILED}), ended_from_ns=2300)
    pages = [JobFilter(sort=JobSort.ENDED, descending=True)]
    if url.startswith("sqlite"):  # others read such a small table whole
        pages.append(JobFilter(sort=JobSort.DURATION, descending=True, now_ns=3000))
    with engines.read.connect() as connection:
        for table in ("jobs", "job_specs"):
            connection.exec_driver_sql(f"ANALYZE {'TABLE ' if url.startswith('maria') else ''}{table}")
        explain = "EXPLAIN QUERY PLAN" if url.startswith("sqlite") else "EXPLAIN"
        for question in (job_queries.counts(failed), *(job_queries.page(each, 9) for each in pages)):
            asked = str(question.compile(engines.read, compile_kwargs={"literal_binds": True}))
            steps = str(connection.exec_driver_sql(f"{explain} {asked}").all())
            assert "ix_jobs_ended" in steps, steps
    engines.dispose()


def test_old_rows_are_found_by_an_index_and_outside_of_transactions(tmp_path: Path) -> None:
    """While rows to prune are searched, another process can write, and no table of the log is scanned."""
    url, searches = f"sqlite:///{tmp_path}/store.sqlite3", list[str]()
    store = database.open_store(url)
    store.lead("me")
    rows = [make.audit_entry(at_ns=at) for at in range(250)]
    keys = [IdempotencyKey("t", str(at), "d", ids.encode(1), at) for at in range(250)]
    store.commit([Change(insert=[*rows, *keys, make.shadow_result(at_ns=1), make.event_of(at_ns=1)])])

    @event.listens_for(Engine, "before_cursor_execute")
    def _executed(connection: Connection, _cursor: object, statement: str, values: object, *_rest: object) -> None:
        if statement.startswith("SELECT") and ("at_ns <" in statement or "created_ns <" in statement):
            searches.append(
                " ".join(row[-1] for row in connection.connection.execute(f"EXPLAIN QUERY PLAN {statement}", values))
            )
            with closing(sqlite3.connect(tmp_path / "store.sqlite3", isolation_level=None, timeout=0)) as other:
                other.execute("BEGIN IMMEDIATE")
                other.execute("ROLLBACK")

    try:
        gone = store.prune(Retention(None, 50, 50, 50), 250)
    finally:
        event.remove(Engine, "before_cursor_execute", _executed)
        store.close()
    assert (gone["audit"], gone["keys"], gone["shadows"]) == (200, 200, 1)
    assert len(searches) == 2 + 2 + 1 + 1 + 2 + len(USAGE_STEPS_S)
    assert not [each for each in searches if "SCAN" in each]


def test_pruning_leaves_time_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each transaction, pruning pauses for as long as it took, because SQLite's lock has no queue."""
    store = database.open_store(f"sqlite:///{tmp_path}/store.sqlite3")
    store.lead("me")
    store.commit([Change(insert=[make.audit_entry(at_ns=at) for at in range(maintenance.AT_ONCE * 2)])])
    pauses = list[float]()
    monkeypatch.setattr("seaway.adapters.sqlalchemy.maintenance.time.sleep", pauses.append)
    assert store.prune(Retention(None, 0, None, None), 1000)["audit"] == maintenance.AT_ONCE * 2
    assert len(pauses) == 2
    assert min(pauses) >= maintenance.PAUSE_S
    store.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_database_from_before_the_first_release_is_left_alone(url: str) -> None:
    """Such a database has a table of another name. It is rejected at any version, and the message names the remedy."""
    execute(url, "CREATE TABLE outgoing (job_id INTEGER)", *VERSIONED)
    for act in (database.migrate, database.open_store, database.current):
        with pytest.raises(RejectedError, match="from before the first release: use an empty database"):
            act(url)
    assert {*definitions(url)} == {"alembic_version", "outgoing"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_newer_database_is_left_alone(url: str) -> None:
    """A database that a newer Seaway migrated is rejected, and the message names the remedy."""
    database.migrate(url)
    execute(url, "UPDATE alembic_version SET version_num = '9999'")
    for act in (database.migrate, database.open_store):
        with pytest.raises(RejectedError, match="9999 of a newer Seaway"):
            act(url)
    assert database.check(url) == [
        f"the tables are at state 9999, this Seaway needs {schema.NEWEST}: run seaway db migrate"
    ]


def test_newest_state_is_that_of_the_last_migration() -> None:
    """The expected revision is that of the last migration, and revisions count up without a gap."""
    scripts = list(ScriptDirectory.from_config(migrations()).walk_revisions())
    assert [script.revision for script in reversed(scripts)] == [f"{at:04}" for at in range(1, len(scripts) + 1)]
    assert scripts[0].revision == schema.NEWEST


@given(st.integers(1, (1 << 63) - 1) | st.text(st.characters(max_codepoint=255), min_size=13, max_size=13))
def test_ids_are_read_as_the_domain_reads_them(drawn: int | str) -> None:
    """The fast way to read an id agrees with the plain way, and 0 means none."""
    text = drawn if isinstance(drawn, str) else ids.encode(drawn)
    assert codec.number(text) == (ids.decode(text) or None)


def test_defaults_of_a_spec_stay() -> None:
    """Default values are not stored, so a default may change only with a migration that writes the old one."""
    assert codec.read_spec('{"name":"a","demand":{"request":{}}}') == JobSpec("a", Demand(ResourceRequest()))
    stored = json.loads(codec._SPEC.dump_json(JobSpec("a", Demand(ResourceRequest()))))  # noqa: SLF001  # the full form
    request = dict.fromkeys(("cpu_milli", "memory_mib", "gpus", "gpu_memory_mib", "gpu_memory_percent", "gpu_milli"), 0)
    many = ("models", "use_types", "avoid_types", "use_uuids", "avoid_uuids", "vendors", "modes", "excluded")
    need = dict.fromkeys(("max_latency_ns", "max_jitter_ns", "max_loss_ppm", "min_bandwidth_mbps"), 0)
    assert stored == {
        "name": "a",
        "demand": {
            "request": request | {"mig": ""},
            "devices": {
                **{name: [] for name in many},
                "same_numa": False,
                "topology": "",
                "exclusive": False,
                "slice_nodes": 1,
            },
            "nodes": {
                **{
                    name: []
                    for name in ("node_labels", "tolerations", "clusters", "regions", "hardware", "avoid", "only")
                },
                "cluster_labels": [],
                "max_microprice": None,
                "pool": [],
            },
            "gateway": "",
            "network": need,
        },
        "preemptible": None,
        "checkpoint": None,
        "expose": {"type": None, "host": "", "node_ports": []},
        "one_by_one": False,
        "standby": None,
        "copy_of": "",
        "ring": False,
        "replicas": 1,
        "min_replicas": 0,
        "lease_s": None,
        "max_replicas": 0,
        "scale": [],
        "array": None,
        "gang": False,
        "between_replicas": need,
        "priority": 0,
        "tenant": "default",
        "queue": "default",
        "template": "job",
        "run": {
            "image": "",
            "pod": "",
            **{name: [] for name in ("command", "args", "env", "ports", "env_from_secret", "env_from_config_map")},
        },
        "runtime": {
            **{name: [] for name in ("volumes", "setup", "init_containers", "containers")},
            "shm_mib": 0,
            "restart_policy": "Never",
            "max_restarts": None,
            "warning": None,
            "workdir": "",
        },
        "expected_duration_s": None,
        "time_limit_s": None,
        "retries": 0,
        "labels": {},
        "single_cluster": False,
        "restarts": False,
        "ends_in_parts": False,
        "on_violation": "report",
        "data": {"location": "", "size_mib": 0, "others": []},
        "after": [],
        "output_mib": 0,
        "notify": [],
    }
