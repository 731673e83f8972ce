from __future__ import annotations

import fcntl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock

import pytest

from tests.turns import LONGEST, Turns, in_turn

PATIENCE_S = 30


class Room:
    """Who is inside."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.inside: set[str] = set()
        self.seen: list[set[str]] = []

    def enter(self, name: str) -> None:
        """Note who is there when a user comes in."""
        with self.lock:
            self.inside.add(name)
            self.seen.append(set(self.inside))

    def leave(self, name: str) -> None:
        """Note that a user left."""
        with self.lock:
            self.inside.remove(name)


def test_who_needs_the_machine_alone_has_it_alone(tmp_path: Path) -> None:
    """Others run together before and after, none beside it."""
    room = Room()

    def run(name: str, *, alone: bool) -> None:
        with Turns(tmp_path).taken(alone=alone):
            room.enter(name)
            Event().wait(0.001)
            room.leave(name)

    with ThreadPoolExecutor(8) as pool:
        for each in [pool.submit(run, f"{n}", alone=n % 5 == 0) for n in range(100)]:
            each.result(PATIENCE_S)
    assert len(room.seen) == 100
    assert all(len(seen) == 1 for seen in room.seen if any(int(name) % 5 == 0 for name in seen))
    assert any(len(seen) > 1 for seen in room.seen)


def test_who_waits_to_be_alone_is_not_overtaken(tmp_path: Path) -> None:
    """One who comes later waits, though another of its kind is inside."""
    order: list[str] = []
    inside, leave = Event(), Event()

    def first() -> None:
        with Turns(tmp_path).taken(alone=False):
            inside.set()
            assert leave.wait(PATIENCE_S)
            order.append("first")

    def run(name: str, *, alone: bool) -> None:
        with Turns(tmp_path).taken(alone=alone):
            order.append(name)

    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(first)]
        assert inside.wait(PATIENCE_S)
        runs.append(pool.submit(run, "alone", alone=True))
        while not door_is_shut(tmp_path):
            pass
        runs.append(pool.submit(run, "later", alone=False))
        leave.set()
        for each in runs:
            each.result(PATIENCE_S)
    assert order == ["first", "alone", "later"]


def door_is_shut(folder: Path) -> bool:
    """Report whether a user waits for the room."""
    with (folder / "door").open("ab") as admission:
        try:
            fcntl.flock(admission, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.mark.parametrize("file", LONGEST)
def test_files_that_take_longest_are_there(file: str) -> None:
    """One that was renamed would begin late again, unnoticed."""
    assert (Path(__file__).parents[1] / file).is_file()


def test_the_longest_begin_first_and_the_quiet_end() -> None:
    """All others stay as they are."""
    assert in_turn(LONGEST[0], quiet=False) < in_turn(LONGEST[-1], quiet=False) < in_turn("unit/x.py", quiet=False)
    assert in_turn("unit/x.py", quiet=False) == in_turn("unit/a.py", quiet=False) < in_turn(LONGEST[0], quiet=True)
