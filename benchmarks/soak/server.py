"""``seaway up`` with periods a hundred times shorter: ``python -m benchmarks.soak.server up ...``.

The settings have days and hours. In a compressed run, neither the database nor the memory could level off with them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from seaway.api.http import server as http
from seaway.application.maintenance import ScheduledTask
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Retention, Store
from seaway.bootstrap.settings import DatabaseSettings
from seaway.cli.main import main
from seaway.cli.serving import server

RETENTION_S = 60
PRUNE_S = 10
FULL_GC_S = 36
NS_PER_S = 1_000_000_000


def short_tasks(
    settings: DatabaseSettings, store: Store, clock: Clock, folder: Path, backup: Callable[[Path], object]
) -> list[ScheduledTask]:
    """Return the removal of old rows, and no backups."""
    del settings, folder, backup
    keep = Retention(*[RETENTION_S * NS_PER_S] * 4)
    return [ScheduledTask("prune", PRUNE_S, lambda: store.prune(keep, clock.now_ns()))]


if __name__ == "__main__":
    vars(http)["FULL_GC_INTERVAL_S"] = FULL_GC_S
    vars(server)["scheduled_tasks"] = short_tasks
    main()
