"""Whose turn it is, where tests run in several processes.

Files that take longest begin first, so that no process is left with one when the others are done. Tests that need the
machine to themselves, because they measure time or use what there is only one of, have the marker ``quiet``: they come
last, and nothing runs beside them. For that each test holds a lock on a file that all processes know, together with
others or alone. Who wants to be alone waits for those that run, and no one begins meanwhile.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST = (
    "integration/test_api_fuzz.py",
    "integration/test_published_openb.py",
    "integration/test_cluster_faults.py",
    "integration/test_kill.py",
    "integration/test_faults.py",
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
"""Files of tests that take a minute or so, those first that take longest."""


def in_turn(file: str, *, quiet: bool) -> tuple[bool, int]:
    """Return what tests are sorted by.

    Parameters
    ----------
    file
        Where the test is, from the folder of tests.
    quiet
        Whether it needs the machine to itself.
    """
    return quiet, LONGEST.index(file) if file in LONGEST else len(LONGEST)


class Turns:
    """The locks.

    Parameters
    ----------
    folder
        Where they lie; the same for all processes.
    """

    def __init__(self, folder: Path) -> None:
        self._admission = folder / "door"
        self._room = folder / "room"

    @contextmanager
    def taken(self, *, alone: bool) -> Iterator[None]:
        """Wait for a turn and take it."""
        with self._room.open("ab") as room:
            with self._admission.open("ab") as admission:  # who waits for the room keeps others from going in before
                fcntl.flock(admission, fcntl.LOCK_EX)
                fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield
