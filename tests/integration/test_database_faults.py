"""Database failures never store partial changes, and never lose acknowledged ones."""

from __future__ import annotations

import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread

import pytest
from sqlalchemy.exc import DBAPIError

from seaway.adapters.sqlalchemy import check, open_store
from seaway.adapters.sqlalchemy.engines import open_engines
from seaway.application.access import Access
from seaway.application.changes import Change, Outcome
from seaway.application.control.overload import DatabaseHealth
from seaway.application.ports.clock import SystemClock
from seaway.application.ports.store import JobFilter, Retention, Store
from seaway.application.records import Role
from seaway.application.writer import Writer
from seaway.domain.errors import ConflictError, UnavailableError
from seaway.domain.job_record import JobRecord
from seaway.domain.queues import Queue
from seaway.domain.tenancy import Tenant
from seaway.testing.clocks import VirtualClock
from tests.conformance.store_suite import store_all
from tests.fakes import records as make
from tests.fakes.records import NOW_NS
from tests.missing import skip_or_fail
from tests.servers.databases import SERVERS, Server
from tests.servers.missing import MissingError


@pytest.fixture
def server(kind: str) -> Iterator[Server]:
    """Return a server that the test may stop."""
    try:
        server = SERVERS[kind]()
    except MissingError as missing:
        skip_or_fail(missing)
    yield server
    server.remove()


def submits(count: int) -> list[Change]:
    """Return changes that store a job with an event each."""
    jobs = [make.job_record(spec=make.spec(labels={"a": "b"})) for _ in range(count)]
    return [Change(insert=[job, make.event_of(job)]) for job in jobs]


def require_whole(store: Store, acknowledged: int) -> None:
    """Check that each job has its event and each event its job, and that all acknowledged ones exist."""
    jobs = {job.id for job in store.live_jobs()}
    events = {event.job_id for event in store.events(0, 1000)}
    assert jobs == events - {""}
    assert len(jobs) >= acknowledged


@pytest.mark.slow
@pytest.mark.parametrize("kind", SERVERS)
def test_a_store_outlives_its_server(server: Server) -> None:
    """While the server is down every call raises unavailable; when it returns the same store has all data and works."""
    store = open_store(server.new_database())
    store.lead("test")
    store_all(store, *submits(20))
    server.stop()
    calls: list[Callable[[], object]] = [
        lambda: store.commit(submits(3)),
        lambda: store.lead("test"),
        store.ping,
        store.last_event,
        lambda: store.jobs(JobFilter(), 10),
        lambda: list(store.live_jobs()),
        lambda: store.prune(Retention(0, 0, 0, 0), NOW_NS),
    ]
    for call in calls:
        with pytest.raises(UnavailableError, match="database") as caught:
            call()
        assert caught.value.retry_after_s > 0
        assert "s3cret" not in str(caught.value)
    server.start()
    require_whole(store, 20)
    store_all(store, *submits(20))
    require_whole(store, 40)
    assert len(list(store.live_jobs())) == 40
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", SERVERS)
def test_a_server_that_is_away_is_noticed_where_nothing_is_stored(server: Server) -> None:
    """The periodic health check notices the outage and the return, and names the host and the cause."""
    store = open_store(server.new_database())
    database_health = DatabaseHealth(store.ping, SystemClock())
    database_health.look()
    assert database_health.trouble == ""
    server.stop()
    database_health.look()
    assert "database" in database_health.trouble
    database_health.look()  # a new connection, after the old one broke
    assert re.search(r"does not answer: .*(127\.0\.0\.1|localhost|/).*(refused|No such file)", database_health.trouble)
    server.start()
    database_health.look()
    assert database_health.trouble == ""
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", SERVERS)
def test_a_server_that_dies_during_commits_loses_nothing(server: Server) -> None:
    """A server killed between and during commits has all acknowledged changes, each of them whole."""
    store = open_store(server.new_database())
    store.lead("test")
    acknowledged: list[str] = []
    for _ in range(3):
        killer = Thread(target=server.stop)
        with pytest.raises(UnavailableError):  # noqa: PT012  # until the server is gone
            while True:
                changes = submits(5)
                store.commit(changes)
                acknowledged += [job.id for change in changes for job in change.insert if isinstance(job, JobRecord)]
                if not killer.ident:
                    killer.start()
        killer.join()
        server.start()
    stored = {job.id for job in store.live_jobs()}
    assert stored.issuperset(acknowledged)
    assert len(stored) % 5 == 0
    assert len(stored) <= len(acknowledged) + 3 * 5
    assert stored == {job_id for job_id in stored if len(store.events(0, 10, job_id=job_id)) == 1}
    store.close()


def test_a_full_disk_stores_nothing_half(tmp_path: Path) -> None:
    """Without room a commit fails and leaves no trace; with room the same store continues."""
    store = open_store(f"sqlite:///{tmp_path}/store.sqlite3")
    store.lead("test")
    store_all(store, *submits(10))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sizes = [file.stat().st_size for file in tmp_path.iterdir()]
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes) + 8192, before[1]))
        with pytest.raises(UnavailableError, match="the disk under the database"):
            store.commit(submits(500))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
        store.ping()
        with pytest.raises(UnavailableError, match="the disk under the database"):
            store.touch()
        require_whole(store, 10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert len(list(store.live_jobs())) == 10
    store.touch()
    store_all(store, *submits(10))
    require_whole(store, 20)
    store.close()
    assert check(f"sqlite:///{tmp_path}/store.sqlite3") == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder with room for two megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_a_disk_that_fills_up_and_is_cleared(small_disk: Path) -> None:
    """On a disk that is really full, acknowledged data stays readable, and the store continues after a cleanup."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 1_000_000)
    store = open_store(f"sqlite:///{small_disk}/store.sqlite3")
    store.lead("test")
    acknowledged = 0
    with pytest.raises(UnavailableError, match="the disk under the database"):  # noqa: PT012  # until it is full
        while True:
            acknowledged += len(store.commit(submits(50)))
    assert acknowledged > 0
    assert len(list(store.live_jobs())) == acknowledged
    ballast.unlink()
    store_all(store, *submits(50))
    assert len(list(store.live_jobs())) == acknowledged + 50
    store.close()
    assert check(f"sqlite:///{small_disk}/store.sqlite3") == []


def test_a_locked_database_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process has SQLite's lock, reads work and a commit raises unavailable after a while."""
    monkeypatch.setattr("seaway.adapters.sqlalchemy.engines.WAIT_S", 0.05)
    store = open_store(f"sqlite:///{tmp_path}/store.sqlite3")
    store.lead("test")
    other = sqlite3.connect(tmp_path / "store.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(UnavailableError, match="locked by another process"):
        store.commit(submits(1))
    assert list(store.live_jobs()) == []
    other.execute("ROLLBACK")
    other.close()
    store_all(store, *submits(1))
    store.close()


def test_a_bug_is_not_called_unavailable(tmp_path: Path) -> None:
    """An invalid statement does not raise the error that asks for a retry."""
    store = open_store(f"sqlite:///{tmp_path}/store.sqlite3")
    store.lead("test")
    engines = open_engines(f"sqlite:///{tmp_path}/store.sqlite3")
    with engines.write.begin() as connection:
        connection.exec_driver_sql("DROP TABLE tokens")
    engines.dispose()
    with pytest.raises(DBAPIError, match="no such table"):
        store.commit([Change(insert=[make.token()])])
    with pytest.raises(DBAPIError, match="NOT NULL"):
        store.commit([Change(insert=[replace(make.cordon(), reason=None)])])  # type: ignore[arg-type]
    store_all(store, *submits(1))
    store.close()


def test_broken_text_does_not_stop_the_rest(tmp_path: Path) -> None:
    """An invalid character in a message is replaced, and the whole batch is stored."""
    store = open_store(f"sqlite:///{tmp_path}/store.sqlite3")
    store.lead("test")
    store_all(store, *submits(3), Change(insert=[make.event_of(reason="no \ud83d here")]))
    assert store.events(3, 1)[0].reason == "no ? here"
    require_whole(store, 3)
    store.close()


def test_an_unreadable_row_is_set_aside_by_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A damaged row of a job or a queue is left out of all lists, and the log names it once.

    It is named until it is repaired or removed.
    """
    url = f"sqlite:///{tmp_path}/store.sqlite3"
    store = open_store(url)
    store.lead("test")
    jobs = [make.job_record() for _ in range(3)]
    store_all(store, *(Change(insert=[job]) for job in jobs), Change(put=[Queue("batch"), Queue("other")]))
    engines = open_engines(url)
    with engines.write.begin() as connection:
        connection.exec_driver_sql("UPDATE job_specs SET spec = '{' WHERE job_id = (SELECT min(job_id) FROM job_specs)")
        connection.exec_driver_sql("UPDATE queues SET guarantee = '[' WHERE name = 'batch'")
    for _ in range(2):
        assert {job.id for job in store.jobs(JobFilter(), 10)} == {job.id for job in jobs[1:]}
        assert [job.id for job in store.live_jobs()] == [job.id for job in jobs[1:]]
        assert "batch" not in {queue.name for queue in store.queues()}
    assert [text for text in caplog.messages if "the table queues with name 'batch'" in text]
    assert len(caplog.messages) == len(set(caplog.messages)) == 2
    named = f"jobs with id '{jobs[0].id}' ({jobs[0].spec.name})"
    assert store.unreadable() == store.unreadable() == [named, "queues with name 'batch'"]
    with engines.write.begin() as connection:
        connection.exec_driver_sql("UPDATE queues SET guarantee = '{}' WHERE name = 'batch'")
    assert store.unreadable() == [named]
    with engines.write.begin() as connection:
        connection.exec_driver_sql("DELETE FROM jobs WHERE id = (SELECT min(job_id) FROM job_specs)")
    engines.dispose()
    assert store.unreadable() == []
    store.close()


CHILD = """
import sys
from random import Random
from seaway.adapters.sqlalchemy import open_store
from seaway.application.changes import Change, Outcome
from seaway.domain.job_spec import JobIds
from tests.fakes import records as make

make.IDS = JobIds(Random(int(sys.argv[2])))
store = open_store(sys.argv[1])
store.lead("child")
while True:
    jobs = [make.job_record() for _ in range(20)]
    assert set(store.commit([Change(insert=[job, make.event_of(job)]) for job in jobs])) == {Outcome.STORED}
    print(*(job.id for job in jobs), flush=True)
"""


@pytest.mark.slow
def test_a_killed_process_keeps_its_word(tmp_path: Path) -> None:
    """Acknowledged data exists after the process is killed, and all other data is whole."""
    url = f"sqlite:///{tmp_path}/store.sqlite3"
    for seed in range(3):
        child = subprocess.Popen([sys.executable, "-c", CHILD, url, str(seed)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(10)]
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.readlines()
        child.stdout.close()
        child.wait()
        promised = {job_id for line in lines if line.endswith("\n") for job_id in line.split()}
        store = open_store(url)
        assert promised
        assert all(store.job(job_id) for job_id in promised)
        store.close()
    assert check(url) == []


@pytest.mark.parametrize("missing", [1, 2])
def test_conflicts_are_found_when_most_of_a_batch_is_new(tmp_path: Path, missing: int) -> None:
    """Of five hundred changes, those in conflict are found, and all others are stored."""
    store = open_store(f"sqlite:///{tmp_path}/store.sqlite3")
    store.lead("test")
    changes = submits(500)
    late = [make.job_record(version=2) for _ in range(missing)]
    changes[250:250] = [Change(update=[job]) for job in late]
    outcomes = store.commit(changes)
    assert outcomes[250 : 250 + missing] == [Outcome.CONFLICT] * missing
    assert outcomes.count(Outcome.STORED) == 500
    require_whole(store, 500)
    store.close()


@pytest.mark.parametrize("kind", ["sqlite", *(pytest.param(name, marks=pytest.mark.slow) for name in SERVERS)])
def test_checks_of_two_leaders_do_not_both_pass(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another process takes over between the check of a change and its transaction, the change is not stored.

    So the last admin stays, names are unique, and no token belongs to a removed tenant.
    """
    url = f"sqlite:///{tmp_path}/s.db" if kind == "sqlite" else request.getfixturevalue("server").new_database()
    old, new, clock = open_store(url), open_store(url), VirtualClock()
    old.lead("old")
    store_all(old, Change(put=[Tenant("t")]))
    access = Access(old, Writer(old), clock)
    admins = [access.create(name, Role.ADMIN, "", None, "me")[0].id for name in ("one", "two")]

    def race(mine: Callable[[Access], object], other: Callable[[Access], object]) -> None:
        old.lead("old")
        writer = Writer(old)
        mine_access, require = Access(old, writer, clock), writer.require

        def late(change: Change) -> None:
            new.lead("new")
            other(Access(new, Writer(new), clock))
            require(change)

        monkeypatch.setattr(writer, "require", late)
        with pytest.raises(UnavailableError, match="another process"):
            mine(mine_access)

    race(lambda each: each.revoke(admins[0]), lambda each: each.revoke(admins[1]))
    race(
        lambda each: each.create("x", Role.ADMIN, "", None, "a"),
        lambda each: each.create("x", Role.ADMIN, "", None, "b"),
    )
    race(
        lambda each: each.create("y", Role.USER, "t", None, "a"),
        lambda _: store_all(new, Change(delete=[Tenant("t")])),
    )
    valid = [(token.name, token.created_by) for token in new.tokens() if token.revoked_ns is None]
    assert sorted(valid) == [("one", "me"), ("x", "b")]
    old.close()
    new.close()


@pytest.mark.parametrize("kind", ["sqlite", *(pytest.param(name, marks=pytest.mark.slow) for name in SERVERS)])
def test_of_concurrent_changes_one_passes_its_check(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Of many threads that revoke the last two admins or create the same name, exactly one succeeds."""
    url = f"sqlite:///{tmp_path}/s.db" if kind == "sqlite" else request.getfixturevalue("server").new_database()
    store = open_store(url)
    store.lead("me")
    writer = Writer(store)
    writer.start()
    access = Access(store, writer, VirtualClock())
    admins = [access.create(name, Role.ADMIN, "", None, "me")[0].id for name in ("one", "two")]
    done = list[str]()

    def attempt(what: str, call: Callable[[], object]) -> None:
        with suppress(ConflictError):
            call()
            done.append(what)

    calls: list[tuple[str, Callable[[], object]]] = [("revoked", partial(access.revoke, each)) for each in admins]
    calls += [("created", partial(access.create, "x", Role.MONITOR, "", None, str(at))) for at in range(6)]
    threads = [Thread(target=attempt, args=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.stop()
    assert sorted(done) == ["created", "revoked"]
    assert len([token for token in store.tokens() if token.revoked_ns is None]) == 2
    store.close()
