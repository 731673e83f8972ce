"""Which duties a control plane has, by its settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from seaway.application.maintenance import Duty
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Retention, Store
from seaway.bootstrap.backups import Backups
from seaway.bootstrap.settings import DatabaseSettings

NS_PER_DAY = 86_400_000_000_000
S_PER_H = 3600
FIRST_BACKUP_S = 300
"""A backup that is overdue waits for so long after a start, which has enough to do."""

FIRST_PRUNE_S = 60
"""How long after the start old rows are removed for the first time, however often a server is restarted."""


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
    """Return what is to be done on a schedule, and clear up after backups that were killed.

    Parameters
    ----------
    folder
        Where backups go; nobody else writes any there. The next is due by the age of the newest there.
    backup
        Writes a backup to a file.
    """
    found = []
    if settings.prune_every_h:
        keep = retention(settings)
        every_s = settings.prune_every_h * S_PER_H
        found.append(Duty("prune", every_s, lambda: store.prune(keep, clock.now_ns()), FIRST_PRUNE_S))
    backups = Backups(folder, settings.backups_kept, clock, backup)
    backups.remove_leftovers()
    if settings.backup_every_h:
        every_s = settings.backup_every_h * S_PER_H
        found.append(Duty("backup", every_s, backups.take, max(backups.due_in_s(every_s), FIRST_BACKUP_S)))
    return found
