"""Order and locks of tests that run in several processes.

The longest files begin first, so that all processes finish at about the same time. Tests that need the machine
to themselves, because they measure time or use a unique resource, have the marker ``quiet``: they run alone, and their
files last, because a process runs whole files, and others idle while a quiet test waits for theirs.
For that each test holds a lock on a file that all processes know, shared or exclusive. A process that waits for the
exclusive lock waits for running tests, and no other test begins before it.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST = (
    "integration/test_api_fuzz.py",
    "integration/test_database_migrations.py",
    "integration/test_published_openb.py",
    "integration/test_cluster_faults.py",
    "integration/test_kill.py",
    "integration/test_faults.py",
    "property/test_cycle.py",
    "scenario/test_scenarios.py",
    "integration/test_leader.py",
    "integration/test_up.py",
    "property/test_control_histories.py",
    "property/test_updates.py",
    "unit/scheduling/test_update.py",
    "property/test_paths_agree.py",
    "unit/cli/test_sweep.py",
    "browser/test_jobs.py",
    "browser/test_fleet.py",
    "unit/learning/runs/test_run.py",
    "integration/test_cli_server.py",
    "integration/test_walk.py",
)
"""Test files that run for about a minute, longest first."""


def sort_key(file: str, *, quiet: bool) -> tuple[bool, int]:
    """Return the sort key of a test file.

    Parameters
    ----------
    file
        The file, relative to the folder of tests.
    quiet
        True for a file with tests that need the machine to themselves.
    """
    return quiet, LONGEST.index(file) if file in LONGEST else len(LONGEST)


class FairLock:
    """The lock of all tests.

    Parameters
    ----------
    folder
        Folder of its files; the same for all processes.
    """

    def __init__(self, folder: Path) -> None:
        self._queue = folder / "queue"
        self._room = folder / "room"

    @contextmanager
    def taken(self, *, alone: bool) -> Iterator[None]:
        """Wait for the lock and hold it."""
        with self._room.open("ab") as room:
            with self._queue.open("ab") as queue:  # a waiting exclusive lock stops new shared ones
                fcntl.flock(queue, fcntl.LOCK_EX)
                fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield
