from __future__ import annotations

import fcntl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock

import pytest

from tests.order import LONGEST, FairLock, sort_key

TIMEOUT_S = 30


class Room:
    """Users that have the lock."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.inside: set[str] = set()
        self.seen: list[set[str]] = []

    def enter(self, name: str) -> None:
        """Note the present users when a user acquires the lock."""
        with self.lock:
            self.inside.add(name)
            self.seen.append(set(self.inside))

    def leave(self, name: str) -> None:
        """Note that a user releases the lock."""
        with self.lock:
            self.inside.remove(name)


def test_exclusive_lock_excludes_others(tmp_path: Path) -> None:
    """Other users share the lock before and after, but not during an exclusive lock."""
    room = Room()

    def run(name: str, *, alone: bool) -> None:
        with FairLock(tmp_path).taken(alone=alone):
            room.enter(name)
            Event().wait(0.001)
            room.leave(name)

    with ThreadPoolExecutor(8) as pool:
        for each in [pool.submit(run, f"{n}", alone=n % 5 == 0) for n in range(100)]:
            each.result(TIMEOUT_S)
    assert len(room.seen) == 100
    assert all(len(seen) == 1 for seen in room.seen if any(int(name) % 5 == 0 for name in seen))
    assert any(len(seen) > 1 for seen in room.seen)


def test_waiting_exclusive_lock_is_not_overtaken(tmp_path: Path) -> None:
    """A later user of a shared lock waits, even while another user shares it."""
    order: list[str] = []
    inside, leave = Event(), Event()

    def first() -> None:
        with FairLock(tmp_path).taken(alone=False):
            inside.set()
            assert leave.wait(TIMEOUT_S)
            order.append("first")

    def run(name: str, *, alone: bool) -> None:
        with FairLock(tmp_path).taken(alone=alone):
            order.append(name)

    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(first)]
        assert inside.wait(TIMEOUT_S)
        runs.append(pool.submit(run, "alone", alone=True))
        while not exclusive_user_waits(tmp_path):
            pass
        runs.append(pool.submit(run, "later", alone=False))
        leave.set()
        for each in runs:
            each.result(TIMEOUT_S)
    assert order == ["first", "alone", "later"]


def exclusive_user_waits(folder: Path) -> bool:
    """Report whether a user waits for the exclusive lock."""
    with (folder / "queue").open("ab") as queue:
        try:
            fcntl.flock(queue, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.mark.parametrize("file", LONGEST)
def test_listed_longest_files_exist(file: str) -> None:
    """A renamed file would begin late without notice."""
    assert (Path(__file__).parents[1] / file).is_file()


def test_longest_tests_run_first_and_quiet_tests_last() -> None:
    """All others keep their order."""
    assert sort_key(LONGEST[0], quiet=False) < sort_key(LONGEST[-1], quiet=False) < sort_key("unit/x.py", quiet=False)
    assert sort_key("unit/x.py", quiet=False) == sort_key("unit/a.py", quiet=False) < sort_key(LONGEST[0], quiet=True)
