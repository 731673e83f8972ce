"""Stored logs of ended jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seaway.adapters.log_files import MIB, LogFiles
from seaway.application.fleet import log_storage
from seaway.application.fleet.log_storage import LogStorage
from seaway.application.ports.logs import NoContainerError
from seaway.application.records import NS_PER_S
from seaway.domain.errors import ConflictError, RejectedError, UnavailableError
from seaway.domain.runtime import Container, Run, Runtime
from seaway.wire.fields import at_ns
from tests.unit.application.scene import Scene, scene


def storing(folder: Path) -> tuple[Scene, LogStorage]:
    """Return a fleet whose logs are stored, and the task that does so."""
    made = scene()
    made.plane.overview.archive = archive = LogFiles(folder, 1)
    storage = LogStorage(made.plane.overview, made.plane.store, archive, made.plane.controller)
    return made, storage


def run(made: Scene, **fields: object) -> str:
    """Submit a job, and let it run."""
    job_id = made.submit(**fields)
    made.clock.advance_s(60)
    made.plane.settle()
    assert made.state(job_id) == "running"
    return job_id


def test_the_log_of_an_ended_job_stays_when_its_pods_are_gone(tmp_path: Path) -> None:
    """The end of a log can be searched as before, also by time. A running job has no stored log."""
    made, storage = storing(tmp_path)
    job_id = run(made, expected_duration_s=100)
    storage.run()
    log = made.plane.overview.latest_log(made.job(job_id), 0)
    assert log.stored() == []
    made.clock.advance_s(100)
    made.plane.settle()
    lines = log.lines(100)
    assert lines[-1].endswith("finished")
    storage.run()
    made.clock.advance_s(2 * made.plane.controller.live.settings.ttl_after_finished_s)
    made.plane.settle()
    with pytest.raises(RejectedError):
        log.read(100)
    assert log.lines(100) == lines
    assert log.lines(1) == lines[-1:]
    assert log.lines(100, contains="FINISHED") == lines[-1:]
    timed = log.lines(100, times=True)
    assert [each.partition(" ")[2] for each in timed] == lines
    last_ns = at_ns(timed[-1].partition(" ")[0])
    assert log.lines(100, since_ns=1) == lines
    assert log.lines(100, since_ns=last_ns) == lines[-1:]
    assert log.lines(100, since_ns=last_ns + NS_PER_S) == []
    with pytest.raises(RejectedError, match="missing"):
        made.plane.overview.latest_log(made.job(job_id), 0, "missing").lines(100)
    made.plane.jobs.delete(job_id, "ada")
    storage.run()
    assert log.stored() == []


def test_all_containers_and_attempts_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each container of each attempt has its own log; the program's is found by its name, and without one."""
    made, storage = storing(tmp_path)
    cluster = made.cluster("alpha")

    def logs(copy: str, _replica: int, _tail: int, container: str = "", *_: object, **__: object) -> Iterator[str]:
        if container not in ("", "main", "proxy"):
            raise NoContainerError(container, ["main", "proxy"])
        return iter([f"2026-11-21T10:00:00.5Z {copy} {container} is served"])

    monkeypatch.setattr(cluster, "logs", logs)
    beside = Runtime(
        containers=(Container("proxy", Run("proxy:1"), cpu_milli=100),), init_containers=(Container("gone", Run("x")),)
    )
    job_id = run(made, runtime=beside, clusters=("alpha",))
    for _ in range(2):
        made.plane.jobs.suspend(job_id, "ada")
        made.plane.settle()
        storage.run()
        made.plane.jobs.resume(job_id, "ada")
        made.clock.advance_s(60)
        made.plane.settle()
    monkeypatch.setattr(cluster, "logs", lambda *_, **__: (_ for _ in ()).throw(RejectedError("no pod")))
    found = made.plane.overview.latest_log
    for attempt in (1, 2):
        proxy = found(made.job(job_id), 0, "proxy", attempt)
        assert proxy.lines(10) == [f"sw-{job_id}-{attempt} proxy is served"]
        assert proxy.lines(10, times=True)[0].startswith("2026-11-21T10:00:00.5Z sw-")
        first, named = (found(made.job(job_id), 0, name, attempt).lines(10) for name in ("", "main"))
        assert first == named == [f"sw-{job_id}-{attempt}  is served"]
        assert found(made.job(job_id), 0, "gone", attempt).stored() == []
    with pytest.raises(ConflictError, match="no attempt 9; the latest is 3"):
        found(made.job(job_id), 0, "", 9)


def test_an_attempt_that_is_retried_is_read_before_its_pods_are_removed(tmp_path: Path) -> None:
    """They wait for the log of a failed program, but not for ever. Without stored logs, they are removed at once."""
    made, storage = storing(tmp_path)
    for reads, waits in ((True, True), (False, True), (False, False)):
        made.plane.controller.wait_for_logs(log_storage.WAIT_S if waits else 0)
        job_id = run(made, retries=1)
        cluster = made.cluster(made.where(job_id))
        log = made.plane.overview.latest_log(made.job(job_id), 0, "", 1)
        cluster.fail_copy(job_id, 1, "out of memory")
        made.plane.settle()
        assert made.state(job_id) == "queued"
        assert bool([*made.plane.store.pending_commands()]) == waits
        if reads:
            storage.run()
        else:
            made.clock.advance_s(log_storage.WAIT_S)
        made.plane.settle()
        assert not [*made.plane.store.pending_commands()]
        with pytest.raises(RejectedError):
            log.read(100)
        assert bool(log.stored()) == reads
        made.clock.advance_s(60)
        made.plane.settle()
        assert made.job(job_id).attempt == 2
        made.plane.jobs.delete(job_id, "ada")
        made.plane.settle()


def test_a_restarted_server_continues_with_the_jobs_that_ended_meanwhile(tmp_path: Path) -> None:
    """The position is in the folder. A cluster that does not respond delays no other, and its logs are not stored."""
    made, storage = storing(tmp_path)
    storage.run()
    ended = [run(made, gpus=2, expected_duration_s=300) for _ in range(2)]
    made.clock.advance_s(300)
    made.plane.settle()
    (lost,) = (each for each in ended if made.where(each) == "alpha")
    made.cluster("alpha").disconnect()
    LogStorage(made.plane.overview, made.plane.store, LogFiles(tmp_path, 1), made.plane.controller).run()
    logs = {each: made.plane.overview.latest_log(made.job(each), 0) for each in ended}
    assert {each: bool(log.stored()) for each, log in logs.items()} == {each: each != lost for each in ended}
    with pytest.raises(UnavailableError):
        logs[lost].lines(1)


@pytest.mark.parametrize("limit", ["RUN_S", "RUN_CPU_S"])
def test_what_a_run_has_no_time_for_is_stored_by_the_next_one(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is out of time, or of CPU time, forgets no job."""
    made, storage = storing(tmp_path)
    job_id = run(made, expected_duration_s=100)
    made.clock.advance_s(100)
    made.plane.settle()
    log = made.plane.overview.latest_log(made.job(job_id), 0)
    with monkeypatch.context() as patched:
        patched.setattr(log_storage, limit, 0)
        storage.run()
    assert log.stored() == []
    storage.run()
    assert log.stored()


def digits_of(number: int) -> str:
    """Return a text that compresses little."""
    return "".join(f"{(number * 7919 + each) ** 3 % 10**9:09}" for each in range(9000))


def test_a_tenant_displaces_no_logs_of_tenants_with_less(tmp_path: Path) -> None:
    """Beyond the limit, the tenant with the largest files loses its oldest, and others keep all of theirs."""
    files = LogFiles(tmp_path, 1)
    for number in range(3):
        files.put("small", f"sw-{number:03}-1", 0, "", [digits_of(number)])
    for number in range(3, 40):
        files.put("large", f"sw-{number:03}-1", 0, "", [digits_of(number)])
    kept = [number for number in range(40) if files.get(f"sw-{number:03}-1", 0, "")]
    assert kept[:3] == [0, 1, 2]
    assert kept[3:] == list(range(kept[3], 40))
    files.drop("039")
    assert files.get("sw-039-1", 0, "") is None


def test_damaged_logs_are_not_there(tmp_path: Path) -> None:
    """A file that is cut, empty or has a wrong byte is the same as a missing one."""
    files = LogFiles(tmp_path, 1)
    files.put("red", "sw-000-1", 0, "", ["some text"] * 100)
    (path,) = tmp_path.glob("*/*.gz")
    whole = path.read_bytes()
    for at in range(len(whole)):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]):
            path.write_bytes(damaged)
            assert files.get("sw-000-1", 0, "") in (None, ["some text"] * 100)


def test_the_oldest_logs_make_room(tmp_path: Path) -> None:
    """All files together stay within the limit, also after a restart."""
    files = LogFiles(tmp_path, 1)
    for number in range(40):
        files.put("red", f"sw-{number:03}-1", 0, "", [digits_of(number)])
        if number == 20:
            files = LogFiles(tmp_path, 1)
    kept = [number for number in range(40) if files.get(f"sw-{number:03}-1", 0, "")]
    assert 0 < len(kept) < 40
    assert kept == list(range(kept[0], 40))
    assert sum(each.stat().st_size for each in tmp_path.rglob("*.gz")) <= MIB
    assert files.get("../sw-039-1", 0, "") is None
    assert files.get("sw-039-1", 0, "../x") is None
