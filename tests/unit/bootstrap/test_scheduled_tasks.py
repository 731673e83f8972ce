from __future__ import annotations

from pathlib import Path

import pytest

from seaway.adapters.sqlalchemy.backups import backup as back_up
from seaway.adapters.sqlalchemy.backups import restore
from seaway.adapters.sqlalchemy.store import open_store
from seaway.application.changes import Change
from seaway.application.maintenance import Maintenance
from seaway.bootstrap.scheduled_tasks import FIRST_BACKUP_S, retention, scheduled_tasks
from seaway.bootstrap.settings import DatabaseSettings
from seaway.domain.errors import UnavailableError
from seaway.domain.job_state import JobState
from seaway.testing.clocks import VirtualClock
from tests.fakes.memory_store import MemoryStore
from tests.fakes.records import job_record

DAY_NS = 86_400 * 10**9


def write(path: Path) -> None:
    """Write a backup."""
    path.write_text("backup", encoding="utf-8")


def test_days_become_nanoseconds() -> None:
    """The way how long rows are kept is reported in days."""
    retained = retention(
        DatabaseSettings(
            job_retention_days=1, audit_retention_days=2, sample_retention_days=3, idempotency_key_retention_days=4
        )
    )
    assert (retained.jobs_ns, retained.audit_ns, retained.samples_ns, retained.keys_ns) == tuple(
        DAY_NS * at for at in (1, 2, 3, 4)
    )


def test_zero_means_never(tmp_path: Path) -> None:
    """Anything that is to be done every 0 hours is not done."""
    settings = DatabaseSettings(prune_interval_h=0, backup_interval_h=0)
    assert scheduled_tasks(settings, MemoryStore(), VirtualClock(), tmp_path, write) == []


def test_old_rows_are_removed(tmp_path: Path) -> None:
    """Pruning removes what is older than the settings allow, by the clock at the time."""
    clock, store = VirtualClock(), MemoryStore()
    store.lead("test")
    old = job_record(state=JobState.COMPLETED, ended_ns=clock.now_ns())
    store.commit([Change(insert=[old])])
    (prune,) = scheduled_tasks(
        DatabaseSettings(job_retention_days=1, backup_interval_h=0), store, clock, tmp_path, write
    )
    prune.do()
    assert store.job(old.id)
    clock.advance(2 * DAY_NS)
    prune.do()
    assert store.job(old.id) is None


def test_the_latest_backups_are_stored(tmp_path: Path) -> None:
    """Backups are named by time, whole or not there, and only so many are kept."""
    clock = VirtualClock()
    settings = DatabaseSettings(prune_interval_h=0, backup_retention_count=2)
    (backup,) = scheduled_tasks(settings, MemoryStore(), clock, tmp_path / "backups", write)
    assert backup.first_s == FIRST_BACKUP_S
    for _ in range(4):
        clock.advance(DAY_NS)
        backup.do()
    names = sorted(path.name for path in (tmp_path / "backups").iterdir())
    assert names == ["seaway-20260104T000000Z.backup", "seaway-20260105T000000Z.backup"]


def test_a_backup_that_fails_leaves_the_others(tmp_path: Path) -> None:
    """One that is not finished is not taken for a backup."""

    def fail(path: Path) -> None:
        write(path)
        raise UnavailableError("disk full")

    (backup,) = scheduled_tasks(DatabaseSettings(prune_interval_h=0), MemoryStore(), VirtualClock(), tmp_path, fail)
    with pytest.raises(UnavailableError):
        backup.do()
    assert not list(tmp_path.iterdir())


def test_a_restart_does_not_put_a_backup_off(tmp_path: Path) -> None:
    """However often a server is restarted, a backup is due when the newest is a day old."""
    clock, settings = VirtualClock(), DatabaseSettings(prune_interval_h=0, backup_retention_count=30)
    store, database = open_store(f"sqlite:///{tmp_path}/seaway.db"), f"sqlite:///{tmp_path}/seaway.db"
    for _ in range(24):  # every eight hours, eight days long
        folder = tmp_path / "backups"
        maintenance = Maintenance(
            scheduled_tasks(settings, store, clock, folder, lambda path: back_up(database, path, clock.now_ns())), clock
        )
        clock.advance_s(FIRST_BACKUP_S)
        maintenance.step()
        clock.advance(DAY_NS // 3 - FIRST_BACKUP_S * 10**9)
    store.close()
    backups = sorted((tmp_path / "backups").iterdir())
    assert [path.name[7:15] for path in backups] == [f"202601{day:02}" for day in range(1, 9)]
    assert restore(f"sqlite:///{tmp_path}/restored.db", backups[-1]).rows["tokens"] == 0


def test_what_killed_backups_left_is_removed(tmp_path: Path) -> None:
    """Files half written by a server that was killed go at the next start; backups and strangers' files stay."""
    gone = [".seaway-20260101T000000Z.backup.part", "..seaway-20260101T000000Z.backup.part.123"]
    retained = ["seaway-20260101T000000Z.backup", "notes.part"]
    for name in gone + retained:
        (tmp_path / name).touch()
    scheduled_tasks(DatabaseSettings(), MemoryStore(), VirtualClock(), tmp_path, write)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(retained)


def test_backups_of_a_clock_that_was_set_back_go_first(tmp_path: Path) -> None:
    """One from the future says nothing about when the next is due, and makes room for it."""
    (tmp_path / "seaway-20370101T000000Z.backup").touch()
    (tmp_path / "seaway-notes.backup").touch()
    settings = DatabaseSettings(prune_interval_h=0, backup_retention_count=1)
    (backup,) = scheduled_tasks(settings, MemoryStore(), VirtualClock(), tmp_path, write)
    assert backup.first_s == FIRST_BACKUP_S
    backup.do()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seaway-20260101T000000Z.backup", "seaway-notes.backup"]


def test_all_backups_are_stored_if_that_is_wanted(tmp_path: Path) -> None:
    """To keep 0 means to remove none."""
    clock = VirtualClock()
    (backup,) = scheduled_tasks(
        DatabaseSettings(prune_interval_h=0, backup_retention_count=0), MemoryStore(), clock, tmp_path, write
    )
    for _ in range(9):
        clock.advance(DAY_NS)
        backup.do()
    assert len(list(tmp_path.iterdir())) == 9
