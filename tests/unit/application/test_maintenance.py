from __future__ import annotations

from itertools import pairwise
from threading import Event

from seaway.application.maintenance import Duty, Maintenance
from seaway.domain.errors import UnavailableError
from seaway.testing.clocks import VirtualClock


def test_duties_are_done_every_so_often() -> None:
    """Each is done when its time comes, for the first time after one interval, and again after the next."""
    clock, done = VirtualClock(), list[str]()
    maintenance = Maintenance([Duty("a", 10, lambda: done.append("a")), Duty("b", 25, lambda: done.append("b"))], clock)
    assert maintenance.step() == 10
    for _ in range(10):
        clock.advance_s(5)
        maintenance.step()
    assert done == ["a", "a", "b", "a", "a", "a", "b"]
    assert maintenance.step() == 10


def test_a_duty_that_fails_is_tried_the_next_time() -> None:
    """Neither an unavailable database nor a bug ends maintenance, nor keeps the other duties from being done."""
    clock, done = VirtualClock(), list[str]()
    errors: list[Exception] = [UnavailableError("gone"), ValueError("bug")]

    def fail() -> None:
        if errors:
            raise errors.pop(0)
        done.append("fails")

    maintenance = Maintenance([Duty("fails", 10, fail), Duty("works", 10, lambda: done.append("works"))], clock)
    for _ in range(3):
        clock.advance_s(10)
        maintenance.step()
    assert done == ["works", "works", "fails", "works"]


def test_what_fails_is_tried_again_soon() -> None:
    """After a failure a duty waits a minute, then twice as long each time up to an hour, and never past its time."""
    clock, tries = VirtualClock(), list[int]()
    failing = True

    def fail() -> None:
        tries.append(clock.monotonic_ns() // 10**9)
        if failing:
            raise OSError("disk full")

    maintenance = Maintenance([Duty("fails", 86_400, fail, first_s=0)], clock)
    for _ in range(9):
        clock.advance_s(maintenance.step())
    assert [after - before for before, after in pairwise(tries)] == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    failing = False
    assert maintenance.step() == 86_400


def test_the_first_time_may_come_sooner() -> None:
    """A duty may be due at once, whatever lies between later times."""
    done = list[str]()
    maintenance = Maintenance([Duty("a", 10, lambda: done.append("a"), first_s=0)], VirtualClock())
    assert maintenance.step() == 10
    assert done == ["a"]


def test_setting_the_clock_makes_no_duty_due() -> None:
    """Duties go by time that passes."""
    clock, done = VirtualClock(), list[str]()
    maintenance = Maintenance([Duty("a", 10, lambda: done.append("a"))], clock)
    clock.jump(10**15)
    maintenance.step()
    assert not done


def test_it_stops_at_once() -> None:
    """A thread that waits for the next duty ends when it is asked to; without duties there is nothing to wait for."""
    did = Event()
    clock = VirtualClock()
    maintenance = Maintenance([Duty("now", 0, did.set)], clock)
    maintenance.start()
    assert did.wait(10)
    maintenance.stop()
    idle = Maintenance([], clock)
    assert idle.step() == 3600
    idle.start()
    idle.stop()
