"""Backups are complete, can be restored into another kind of database, and never damage existing data."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from sqlalchemy import QueuePool, select

from seaway.adapters import sqlalchemy as database
from seaway.adapters.sqlalchemy.backup_file import BackupReader
from seaway.adapters.sqlalchemy.backups import DROPPED, TABLES
from seaway.adapters.sqlalchemy.engines import open_engines
from seaway.application.changes import Change, Outcome
from seaway.application.records import (
    Acknowledgement,
    ClusterInventory,
    ClusterReport,
    FiringAlert,
    JobUse,
    LastUse,
    SavedFilter,
    ScaleWindow,
    UsageSample,
    WorkdirRecord,
)
from seaway.domain.errors import InvariantError, RejectedError
from seaway.domain.job_state import AttemptState, JobState
from seaway.domain.notifications import Channel, Delivery, Notification, NotifierState, Occasion
from seaway.domain.queues import Order, Queue
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import DEFAULT
from seaway.learning.policies.file import pack
from tests.conformance.store_suite import store_all
from tests.fakes import records as make
from tests.fakes.policies import cluster_policy
from tests.fakes.records import NOW_NS
from tests.missing import skip_or_fail
from tests.servers.databases import SERVERS, Server, servers
from tests.servers.missing import MissingError


@pytest.fixture(scope="module")
def give_server() -> Iterator[Callable[[str], Server]]:
    """Return a function that starts database servers."""
    with servers() as give:
        yield give


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the URL of a SQLite database with rows in every table."""
    url = f"sqlite:///{tmp_path}/store.sqlite3"
    store = database.open_store(url)
    store.lead("test")
    jobs = [make.job_record(spec=make.full_spec(), clusters=("c1",), state=JobState.RUNNING, attempt=1)]
    jobs += [make.job_record() for _ in range(1500)]
    store_all(store, Change(insert=[*jobs, make.attempt_of(jobs[0], state=AttemptState.RUNNING)]))
    store_all(store, Change(insert=[make.pending_command_of(jobs[0]), make.event_of(jobs[0]), make.key_of(jobs[0])]))
    store_all(store, Change(insert=[make.token(), make.audit_entry(), make.cordon(), make.shadow_result()]))
    store_all(store, Change(insert=[make.cluster_sample(), make.cluster_name(), make.link_sample()]))
    tiny = cluster_policy()
    policy = make.policy_record(digest=tiny.digest, content=pack(tiny))
    store_all(store, Change(insert=[make.network_record(), make.agent_record(), make.path_record(), policy]))
    queue = Queue("q", parent=DEFAULT, guarantee={"gpus": 1500}, limit={"memory": 1 << 20}, order=Order.FIFO)
    notification = Notification("t", "ops", Channel.WEBHOOK, "https://example.com/", sealed="x", on=(Occasion.FAILED,))
    reservation = AdvanceReservation("r", NOW_NS, NOW_NS + 1, "t", "q", 2, "A100", frozenset({"c"}))
    store_all(store, Change(insert=[make.evaluation_record(), queue, make.cluster_facts(), reservation, notification]))
    message = Delivery("msg_1", "t", "ops", jobs[0].id, "train", Occasion.FAILED, "{}", NOW_NS, NOW_NS)
    store_all(store, Change(insert=[message, NotifierState(1, NOW_NS), ScaleWindow(jobs[0].id, 2, "[]")]))
    view, sample = SavedFilter("ada", "mine", "state=failed", NOW_NS), UsageSample(60, NOW_NS, "queue", "q", "t", 1, 8)
    archive, used = (
        WorkdirRecord("t", "sha256:1", 3, "00", "ada", 1, 2),
        LastUse("ada", "", "k", "user", "t", "::1", NOW_NS),
    )
    known = Acknowledgement("SeawayQueueLong", "q", "ada", NOW_NS)
    last = ClusterReport("c", "up", "", 1, 2), ClusterInventory("c", make.full_cluster()), FiringAlert("a", "c", 3)
    store_all(store, Change(insert=[*last, archive, view, sample, used, known, JobUse(jobs[0].id, b"\x01")]))
    store.close()
    return url


def everything(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Read all tables of a backup."""
    engines = open_engines(url)
    with engines.read.connect() as connection:
        rows = {
            name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key.columns))]
            for name, table in TABLES.items()
        }
    engines.dispose()
    return rows


@pytest.mark.slow
def test_rows_survive_the_way_through_all_databases(
    url: str, tmp_path: Path, give_server: Callable[[str], Server]
) -> None:
    """From SQLite to MariaDB, to PostgreSQL and back to SQLite, every row of every table is unchanged."""
    before = everything(url)
    assert [name for name, rows in before.items() if not rows] == []
    here = url
    for kind in (*SERVERS, "sqlite"):
        try:
            there = f"sqlite:///{tmp_path}/back.sqlite3" if kind == "sqlite" else give_server(kind).new_database()
        except MissingError as missing:
            skip_or_fail(missing)
        file = tmp_path / f"{kind}.backup"
        counted = database.backup(here, file, NOW_NS)
        assert database.restore(there, file).rows == counted == {name: len(rows) for name, rows in before.items()}
        assert everything(there) == before
        assert database.check(there) == []
        here = there


@pytest.mark.slow
@pytest.mark.parametrize("kind", SERVERS)
def test_a_failed_restore_leaves_a_server_as_it_was(
    url: str, tmp_path: Path, kind: str, give_server: Callable[[str], Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a server too, a restore that fails half-way leaves the existing data."""
    try:
        there = give_server(kind).new_database()
    except MissingError as missing:
        skip_or_fail(missing)
    fail_half_way(url, there, tmp_path / "a.backup", monkeypatch)


def test_a_failed_restore_leaves_sqlite_as_it_was(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore that fails half-way leaves the existing data."""
    fail_half_way(url, f"sqlite:///{tmp_path}/other.sqlite3", tmp_path / "a.backup", monkeypatch)


def fail_half_way(url: str, there: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore with a failure after some pages, and check that nothing changed."""
    store = database.open_store(there)
    store.lead("test")
    store_all(store, Change(insert=[make.token(id="mine"), make.job_record()]))
    store.close()
    before = everything(there)
    database.backup(url, file, NOW_NS)
    pages = BackupReader.pages
    calls = 0

    def fail(self: BackupReader, size: int, progress: Any) -> Iterator[Any]:  # noqa: ANN401
        nonlocal calls
        calls += 1
        for at, page in enumerate(pages(self, size, progress)):
            if calls == 2 and at == 8:
                raise RuntimeError("the power fails")
            yield page

    monkeypatch.setattr(BackupReader, "pages", fail)
    with pytest.raises(RuntimeError, match="power"):
        database.restore(there, file, force=True)
    assert everything(there) == before


def test_a_database_that_is_not_empty_is_stored_unless_forced(url: str, tmp_path: Path) -> None:
    """A restore replaces existing data only with force, and then completely, except for archives of folders."""
    file = tmp_path / "a.backup"
    database.backup(url, file, NOW_NS)
    store = database.open_store(f"sqlite:///{tmp_path}/other.sqlite3")
    store.lead("test")
    archive = WorkdirRecord("t", "sha256:2", 3, "00", "ada", 1, 2)
    store_all(store, Change(insert=[make.token(id="mine"), archive]))
    with pytest.raises(RejectedError, match=r"not empty \(it has tokens\)"):
        database.restore(f"sqlite:///{tmp_path}/other.sqlite3", file)
    assert [token.id for token in store.tokens()] == ["mine"]
    database.restore(f"sqlite:///{tmp_path}/other.sqlite3", file, force=True)
    assert ([token.id for token in store.tokens()], store.workdirs()) == (["t1"], [archive])
    with pytest.raises(InvariantError, match="another process"):
        store.commit([Change(insert=[make.token(id="late")])])
    store.close()


def test_a_token_that_was_revoked_since_stays_revoked(url: str, tmp_path: Path) -> None:
    """A restore keeps tokens revoked that the replaced database had revoked; another database has no such list."""
    file = tmp_path / "a.backup"
    store = database.open_store(url)
    store.lead("test")
    store_all(store, Change(insert=[make.token(id="t2", name="bob")]))
    database.backup(url, file, NOW_NS)
    store_all(store, Change(update=[make.token(revoked_ns=NOW_NS + 1)], insert=[make.token(id="t3")]))
    store.close()
    restored = database.restore(url, file, force=True)
    assert (restored.retained_revoked, restored.holding) == (1, [("bob", "t2")])
    elsewhere = f"sqlite:///{tmp_path}/other.sqlite3"
    restored = database.restore(elsewhere, file)
    assert (restored.retained_revoked, restored.holding) == (0, [("ci", "t1"), ("bob", "t2")])
    store = database.open_store(url)
    assert [(token.id, token.revoked_ns) for token in store.tokens()] == [("t1", NOW_NS + 1), ("t2", None)]
    store.close()


def test_a_restore_revokes_all_tokens_where_it_is_asked_to(url: str, tmp_path: Path) -> None:
    """With that option no token of the backup is valid, and revoked ones keep the time of their revocation."""
    file = tmp_path / "a.backup"
    store = database.open_store(url)
    store.lead("test")
    store_all(store, Change(insert=[make.token(id="t2", revoked_ns=NOW_NS)]))
    store.close()
    database.backup(url, file, NOW_NS)
    restored = database.restore(url, file, force=True, revoke_ns=NOW_NS + 5)
    assert (restored.retained_revoked, restored.holding) == (0, [])
    store = database.open_store(url)
    assert [(token.id, token.revoked_ns) for token in store.tokens()] == [("t1", NOW_NS + 5), ("t2", NOW_NS)]
    store.close()


def test_a_fresh_database_counts_as_empty(url: str, tmp_path: Path) -> None:
    """The default tenant, pool and queue do not prevent a restore."""
    file = tmp_path / "a.backup"
    database.backup(url, file, NOW_NS)
    store = database.open_store(f"sqlite:///{tmp_path}/other.sqlite3")
    store.lead("test")
    store.close()
    database.restore(f"sqlite:///{tmp_path}/other.sqlite3", file)
    assert everything(f"sqlite:///{tmp_path}/other.sqlite3") == everything(url)


def damaged(lines: list[bytes]) -> dict[str, list[bytes]]:
    """Return possible damage to the lines of a backup."""
    job = next(at for at, line in enumerate(lines) if line.startswith(b"[") and b"pending" in line)
    return {
        "line missing": lines[:job] + lines[job + 1 :],
        "line changed": [*lines[:job], lines[job].replace(b"pending", b"running"), *lines[job + 1 :]],
        "end missing": lines[:-1],
        "half": lines[: len(lines) // 2],
        "not JSON": [*lines[:job], b"[1,2\n", *lines[job + 1 :]],
    }


def test_a_damaged_backup_is_refused(url: str, tmp_path: Path) -> None:
    """A file with a missing or changed part is rejected before the database changes."""
    file, target = tmp_path / "a.backup", tmp_path / "none.sqlite3"
    database.backup(url, file, NOW_NS)
    packed = file.read_bytes()
    lines = gzip.decompress(packed).splitlines(keepends=True)
    bad = {how: gzip.compress(b"".join(rest), 1) for how, rest in damaged(lines).items()}
    bad |= {"cut": packed[:-100], "bit": packed[:5000] + bytes([packed[5000] ^ 4]) + packed[5001:]}
    for how, content in bad.items():
        file.write_bytes(content)
        with pytest.raises(RejectedError, match="damaged"):
            database.restore(f"sqlite:///{target}", file)
        assert not target.exists(), how
    file.write_bytes(b"dear diary")
    with pytest.raises(RejectedError):
        database.restore(f"sqlite:///{target}", file)
    with pytest.raises(RejectedError, match="cannot be read"):
        database.restore(f"sqlite:///{target}", tmp_path / "nowhere")


def test_a_backup_of_a_newer_seaway_is_refused(url: str, tmp_path: Path) -> None:
    """A file with newer tables or format is rejected, and the message names that."""
    file = tmp_path / "a.backup"
    database.backup(url, file, NOW_NS)
    first, *rest = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    for field, value in (("schema", "9999"), ("format", 99)):
        head = orjson.loads(first)
        head["seaway"][field] = value
        file.write_bytes(gzip.compress(b"".join([orjson.dumps(head), b"\n", *rest]), 1))
        with pytest.raises(RejectedError, match="newer Seaway"):
            database.restore(f"sqlite:///{tmp_path}/none.sqlite3", file)


def test_an_older_backup_may_lack_columns_and_tables(url: str, tmp_path: Path) -> None:
    """Tables that came later stay empty, and columns that came later get their default."""
    file = tmp_path / "a.backup"
    database.backup(url, file, NOW_NS)
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    start = next(at for at, line in enumerate(lines) if b'"table":"tokens"' in line)
    retained = [line for at, line in enumerate(lines) if not start <= at <= start + 2]
    file.write_bytes(gzip.compress(b"".join(retained), 1))
    assert database.restore(f"sqlite:///{tmp_path}/other.sqlite3", file).rows["tokens"] == 0


def test_a_backup_from_before_the_first_release_is_refused(url: str, tmp_path: Path) -> None:
    """Such a file has the first format."""
    file = tmp_path / "a.backup"
    database.backup(url, file, NOW_NS)
    file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes()).replace(b'"format":2', b'"format":1', 1)))
    with pytest.raises(RejectedError, match="before the first release"):
        database.restore(f"sqlite:///{tmp_path}/none.sqlite3", file)


def test_an_older_backup_may_have_columns_that_were_dropped(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup's values for dropped columns are skipped, and everything else is restored."""
    monkeypatch.setitem(DROPPED, "pending_commands", frozenset({"error", "tries"}))
    file = tmp_path / "a.backup"
    database.backup(url, file, NOW_NS)
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    start = next(at for at, line in enumerate(lines) if b'"table":"pending_commands"' in line)
    head, row = orjson.loads(lines[start]), orjson.loads(lines[start + 1])
    head["columns"][2:2] = ["error", "tries"]
    row[2:2] = ["no answer", 7]
    lines[start], lines[start + 1] = orjson.dumps(head) + b"\n", orjson.dumps(row) + b"\n"
    lines[start + 2] = orjson.dumps({"rows": 1, "sha256": hashlib.sha256(lines[start + 1]).hexdigest()}) + b"\n"
    file.write_bytes(gzip.compress(b"".join(lines), 1))
    database.restore(f"sqlite:///{tmp_path}/other.sqlite3", file)
    assert everything(f"sqlite:///{tmp_path}/other.sqlite3") == everything(url)


def test_a_backup_is_of_one_moment(url: str, tmp_path: Path) -> None:
    """Data stored while a backup runs is not part of it, and no writer waits."""
    store = database.open_store(url)
    store.lead("test")
    seen: list[tuple[int, int]] = []

    def interfere(done: int, total: int) -> None:
        if not seen:
            job = make.job_record()
            change = Change(insert=[job, make.attempt_of(job), make.event_of(job), make.token(id=job.id)])
            assert store.commit([change]) == [Outcome.STORED]
        seen.append((done, total))

    before = everything(url)
    database.backup(url, tmp_path / "a.backup", NOW_NS, interfere)
    assert everything(url) != before
    database.restore(f"sqlite:///{tmp_path}/other.sqlite3", tmp_path / "a.backup")
    assert everything(f"sqlite:///{tmp_path}/other.sqlite3") == before
    assert seen[-1][0] == seen[-1][1]
    store.close()


def test_a_backup_that_fails_leaves_the_last_one(url: str, tmp_path: Path) -> None:
    """The existing file stays as it was until the new one is complete, and no draft is left over."""
    file = tmp_path / "a.backup"
    file.write_text("the last one")

    def fail(_done: int, _total: int) -> None:
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        database.backup(url, file, NOW_NS, fail)
    assert file.read_text() == "the last one"
    assert list(tmp_path.glob(".*")) == []
    with pytest.raises(RejectedError, match="cannot be written"):
        database.backup(url, tmp_path / "no" / "folder", NOW_NS)


def disk_with(free: Iterator[int]) -> Callable[[Path], Any]:
    """Return the use of a disk of 100 MiB, with each number of free bytes in turn."""
    return lambda _folder: SimpleNamespace(total=100 << 20, free=next(free))


def test_a_backup_without_room_is_not_begun(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The room is checked before the backup, by the size of the database, and a part of the disk stays free."""
    size = (tmp_path / "store.sqlite3").stat().st_size
    (tmp_path / "b").mkdir()
    needed = size // 4 + (5 << 20)
    monkeypatch.setattr("seaway.adapters.sqlalchemy.backup_file.disk_usage", disk_with(iter([needed - 4096])))
    with pytest.raises(RejectedError, match="a backup needs about 1 MiB and leaves 5 MiB free, but the disk has 5 MiB"):
        database.backup(url, tmp_path / "b" / "file", NOW_NS)
    assert list((tmp_path / "b").iterdir()) == []
    monkeypatch.setattr("seaway.adapters.sqlalchemy.backup_file.disk_usage", disk_with(repeat(needed + 4096)))
    assert database.backup(url, tmp_path / "b" / "file", NOW_NS)["jobs"] == 1501


def test_a_backup_stops_before_the_disk_is_full(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If others fill the disk during a backup, it leaves them the reserve, and no incomplete file."""
    enough = chain([50 << 20] * 5, repeat(5 << 20))
    monkeypatch.setattr("seaway.adapters.sqlalchemy.backup_file.disk_usage", disk_with(enough))
    assert database.backup(url, tmp_path / "file", NOW_NS)["jobs"] == 1501
    monkeypatch.setattr(
        "seaway.adapters.sqlalchemy.backup_file.disk_usage", disk_with(chain([50 << 20] * 5, repeat((5 << 20) - 1)))
    )
    before = (tmp_path / "file").read_bytes()
    with pytest.raises(RejectedError, match="free some space"):
        database.backup(url, tmp_path / "file", NOW_NS)
    assert (tmp_path / "file").read_bytes() == before
    assert not list(tmp_path.glob(".file*"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", SERVERS)
def test_the_size_of_a_server_counts(
    kind: str, tmp_path: Path, url: str, give_server: Callable[[str], Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup of a server is refused by the size of its database too."""
    try:
        there = give_server(kind).new_database()
    except MissingError as missing:
        skip_or_fail(missing)
    database.backup(url, tmp_path / "file", NOW_NS)
    database.restore(there, tmp_path / "file")
    monkeypatch.setattr("seaway.adapters.sqlalchemy.backup_file.disk_usage", disk_with(iter([(5 << 20) + 1])))
    with pytest.raises(RejectedError, match="free some space"):
        database.backup(there, tmp_path / "other", NOW_NS)


def test_caches_of_sqlite_are_bounded(url: str) -> None:
    """All connections together, with each at its limit, cache at most 288 MiB of pages."""
    engines, total_kib = open_engines(url), 0
    for engine in (engines.write, engines.read):
        pool = engine.pool
        assert isinstance(pool, QueuePool)
        with engine.connect() as connection:
            cache_kib = -connection.exec_driver_sql("PRAGMA cache_size").scalar_one()
        total_kib += cache_kib * (pool.size() + pool._max_overflow)  # noqa: SLF001  # it has no getter
    engines.dispose()
    assert total_kib <= 288 << 10


def test_check_finds_what_does_not_make_sense(tmp_path: Path) -> None:
    """Attempts without a live job of that number, duplicates, orphaned messages and damaged policies are reported."""
    url = f"sqlite:///{tmp_path}/store.sqlite3"
    store = database.open_store(url)
    store.lead("test")
    good = make.job_record(state=JobState.RUNNING, attempt=1)
    ended = make.job_record(state=JobState.FAILED, attempt=1)
    twice = make.job_record(state=JobState.RUNNING, attempt=2)
    orphan = make.job_record()
    rows = [make.attempt_of(job, state=AttemptState.RUNNING) for job in (good, ended, twice, orphan)]
    store_all(store, Change(insert=[good, ended, twice, *rows, make.pending_command_of(good)]))
    store_all(store, Change(insert=[replace(rows[2], number=2), make.pending_command_of(good, 7)]))
    other = make.policy_record(name="other", content=pack(cluster_policy()))
    store_all(store, Change(insert=[other, make.policy_record(name="broken")]))
    store.close()
    reported: list[tuple[int, int]] = []
    found = database.check(url, lambda done, of: reported.append((done, of)))
    assert found == [
        f"attempt 1 of job {ended.id} is running, but the job is failed at attempt 1",
        f"attempt 1 of job {twice.id} is running, but the job is running at attempt 2",
        f"attempt 1 of job {orphan.id} is running, but that job does not exist",
        f"job {twice.id} has 2 live attempts, but may have one at most",
        f"cluster c1 has a pending command for attempt 7 of job {good.id}, which does not exist",
        "policy broken is damaged: not a policy file, or a truncated one; import it again",
        "policy other is damaged: it is another by its digest; import it again",
    ]
    assert reported[-1] == (6, 6)
