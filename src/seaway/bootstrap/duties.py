"""Which duties a control plane has, by its settings."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from seaway.application.maintenance import Duty
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Retention, Store
from seaway.bootstrap.settings import DatabaseSettings

NS_PER_DAY = 86_400_000_000_000
S_PER_H = 3600


def retention(settings: DatabaseSettings) -> Retention:
    """Return for how long rows are kept."""
    return Retention(
        jobs_ns=settings.keep_jobs_days * NS_PER_DAY,
        audit_ns=settings.keep_audit_days * NS_PER_DAY,
        samples_ns=settings.keep_samples_days * NS_PER_DAY,
        keys_ns=settings.keep_keys_days * NS_PER_DAY,
    )


def duties(
    settings: DatabaseSettings, store: Store, clock: Clock, folder: Path, backup: Callable[[Path], object]
) -> list[Duty]:
    """Return what is to be done on a schedule.

    Parameters
    ----------
    folder
        Where backups go.
    backup
        Writes a backup to a file.
    """
    found = []
    if settings.prune_every_h:
        keep = retention(settings)
        found.append(Duty("prune", settings.prune_every_h * S_PER_H, lambda: store.prune(keep, clock.now_ns())))
    if settings.backup_every_h:

        def back_up() -> str:
            folder.mkdir(parents=True, exist_ok=True)
            name = datetime.fromtimestamp(clock.now_ns() / 1e9, UTC).strftime("seaway-%Y%m%dT%H%M%SZ.backup")
            unfinished = folder / f".{name}.part"
            backup(unfinished)
            unfinished.replace(folder / name)
            _keep_latest(folder, settings.backups_kept)
            return str(folder / name)

        found.append(Duty("backup", settings.backup_every_h * S_PER_H, back_up))
    return found


def _keep_latest(folder: Path, kept: int) -> None:
    """Remove the oldest backups; their names sort by time."""
    backups = sorted(folder.glob("seaway-*.backup"))
    for path in backups[: max(0, len(backups) - kept)]:
        path.unlink()
