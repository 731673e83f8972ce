"""Scheduled tasks of a control plane, according to its settings."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from seaway.application.maintenance import ScheduledTask, prune
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Retention, Store
from seaway.bootstrap.settings import DatabaseSettings

FORM = "seaway-%Y%m%dT%H%M%SZ.backup"
NS_PER_S = 1_000_000_000


class Backups:
    """Folder of backups, named by their start times.

    Parameters
    ----------
    folder
        The folder; created with the first backup.
    retained
        Number of backups to retain; 0 for all.
    clock
        Clock for names and ages.
    write
        Writes a backup to a file.
    """

    def __init__(self, folder: Path, retained: int, clock: Clock, write: Callable[[Path], object]) -> None:
        self._folder = folder
        self._retained = retained
        self._clock = clock
        self._write = write

    def take(self) -> Path:
        """Write a backup, and remove the oldest ones. The file has a temporary name until it is complete."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / datetime.fromtimestamp(self._clock.now_ns() // NS_PER_S, UTC).strftime(FORM)
        unfinished = path.with_name(f".{path.name}.part")
        try:
            self._write(unfinished)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        backups = self._oldest_first()
        for old in backups[: len(backups) - self._retained] if 0 < self._retained < len(backups) else ():
            old.unlink()
        return path

    def remove_leftovers(self) -> None:
        """Remove incomplete files of interrupted backups. No other process may write backups concurrently."""
        for path in self._folder.glob(".*seaway-*.backup.part*"):
            path.unlink()

    def due_in_s(self, interval_s: float) -> float:
        """Return the seconds until the newest backup is `interval_s` old; 0 without backups."""
        now_ns = self._clock.now_ns()
        newest_s = newest_backup_s(self._folder, now_ns)
        return max(0.0, newest_s + interval_s - now_ns / NS_PER_S) if newest_s else 0.0

    def _oldest_first(self) -> list[Path]:
        """List backups by age. Those with a future time, after a clock was set back, count as oldest."""
        now_s = self._clock.now_ns() // NS_PER_S
        paths = [path for path in self._folder.glob("seaway-*.backup") if _written_s(path)]
        return sorted(paths, key=lambda path: (_written_s(path) <= now_s, _written_s(path)))


def newest_backup_s(folder: Path, now_ns: int) -> int:
    """Return the start time of a folder's newest backup before `now_ns`, seconds since 1970; 0 if there is none."""
    written = (_written_s(path) for path in folder.glob("seaway-*.backup"))
    return max((each for each in written if each * NS_PER_S <= now_ns), default=0)


def _written_s(path: Path) -> int:
    """Return the start time in the name of a backup, seconds since 1970; 0 for other files."""
    try:
        return int(datetime.strptime(path.name, FORM).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return 0


NS_PER_DAY = 86_400_000_000_000
S_PER_H = 3600
FIRST_BACKUP_S = 300
"""Delay of an overdue backup after the start, seconds."""

FIRST_PRUNE_S = 60
"""Delay of the first removal of old records after the start, seconds."""


def retention(settings: DatabaseSettings) -> Retention:
    """Return the retention of records."""
    return Retention(
        jobs_ns=settings.job_retention_days * NS_PER_DAY,
        audit_ns=settings.audit_retention_days * NS_PER_DAY,
        samples_ns=settings.sample_retention_days * NS_PER_DAY,
        keys_ns=settings.idempotency_key_retention_days * NS_PER_DAY,
    )


def scheduled_tasks(
    settings: DatabaseSettings, store: Store, clock: Clock, folder: Path, backup: Callable[[Path], object]
) -> list[ScheduledTask]:
    """Return the scheduled tasks, and remove files of interrupted backups.

    Parameters
    ----------
    folder
        Folder of backups, without other writers. The age of the newest backup determines when the next one is due.
    backup
        Writes a backup to a file.
    """
    found = []
    if settings.prune_interval_h:
        keep = retention(settings)
        interval_s = settings.prune_interval_h * S_PER_H
        found.append(ScheduledTask("prune", interval_s, lambda: prune(store, keep, clock.now_ns()), FIRST_PRUNE_S))
    backups = Backups(folder, settings.backup_retention_count, clock, backup)
    backups.remove_leftovers()
    if settings.backup_interval_h:
        interval_s = settings.backup_interval_h * S_PER_H
        found.append(
            ScheduledTask("backup", interval_s, backups.take, max(backups.due_in_s(interval_s), FIRST_BACKUP_S))
        )
    return found
