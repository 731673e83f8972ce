from __future__ import annotations

from pathlib import Path

import pytest

from seaway.application.changes import Change
from seaway.bootstrap.duties import duties, retention
from seaway.bootstrap.settings import DatabaseSettings
from seaway.domain.errors import UnavailableError
from seaway.domain.lifecycle import JobState
from seaway.testing.clocks import VirtualClock
from seaway.testing.memory_store import MemoryStore
from seaway.testing.records import job_record

DAY_NS = 86_400 * 10**9


def write(path: Path) -> None:
    """Write a backup."""
    path.write_text("backup", encoding="utf-8")


def test_days_become_nanoseconds() -> None:
    """How long rows are kept is said in days."""
    kept = retention(DatabaseSettings(keep_jobs_days=1, keep_audit_days=2, keep_samples_days=3, keep_keys_days=4))
    assert (kept.jobs_ns, kept.audit_ns, kept.samples_ns, kept.keys_ns) == tuple(DAY_NS * at for at in (1, 2, 3, 4))


def test_nought_means_never(tmp_path: Path) -> None:
    """What is to be done every 0 hours is not done."""
    settings = DatabaseSettings(prune_every_h=0, backup_every_h=0)
    assert duties(settings, MemoryStore(), VirtualClock(), tmp_path, write) == []


def test_old_rows_are_removed(tmp_path: Path) -> None:
    """Pruning removes what is older than the settings allow, by the clock at the time."""
    clock, store = VirtualClock(), MemoryStore()
    store.lead("test")
    old = job_record(state=JobState.COMPLETED, ended_ns=clock.now_ns())
    store.commit([Change(insert=[old])])
    (prune,) = duties(DatabaseSettings(keep_jobs_days=1, backup_every_h=0), store, clock, tmp_path, write)
    prune.do()
    assert store.job(old.id)
    clock.advance(2 * DAY_NS)
    prune.do()
    assert store.job(old.id) is None


def test_the_latest_backups_are_kept(tmp_path: Path) -> None:
    """Backups are named by time, whole or not there, and only so many are kept."""
    clock = VirtualClock()
    settings = DatabaseSettings(prune_every_h=0, backups_kept=2)
    (backup,) = duties(settings, MemoryStore(), clock, tmp_path / "backups", write)
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

    (backup,) = duties(DatabaseSettings(prune_every_h=0), MemoryStore(), VirtualClock(), tmp_path, fail)
    with pytest.raises(UnavailableError):
        backup.do()
    assert not list(tmp_path.glob("seaway-*.backup"))
