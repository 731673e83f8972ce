from __future__ import annotations

from itertools import pairwise
from threading import Event

import pytest

from seaway.application.changes import Change
from seaway.application.maintenance import SETTLED_NS, Maintenance, ScheduledTask, prune
from seaway.application.ports.store import Retention
from seaway.domain.errors import UnavailableError
from seaway.testing.clocks import VirtualClock
from tests.fakes.memory_store import MemoryStore
from tests.fakes.records import audit_entry, cluster_sample


def test_duties_are_done_every_so_often() -> None:
    """Each is done when its time comes, for the first time after one interval, and again after the next."""
    clock, done = VirtualClock(), list[str]()
    maintenance = Maintenance(
        [ScheduledTask("a", 10, lambda: done.append("a")), ScheduledTask("b", 25, lambda: done.append("b"))], clock
    )
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

    maintenance = Maintenance(
        [ScheduledTask("fails", 10, fail), ScheduledTask("works", 10, lambda: done.append("works"))], clock
    )
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

    maintenance = Maintenance([ScheduledTask("fails", 86_400, fail, first_s=0)], clock)
    for _ in range(9):
        clock.advance_s(maintenance.step())
    assert [after - before for before, after in pairwise(tries)] == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    failing = False
    assert maintenance.step() == 86_400


def test_the_first_time_may_come_sooner() -> None:
    """A duty may be due at once, whatever lies between later times."""
    done = list[str]()
    maintenance = Maintenance([ScheduledTask("a", 10, lambda: done.append("a"), first_s=0)], VirtualClock())
    assert maintenance.step() == 10
    assert done == ["a"]


def test_setting_the_clock_makes_no_duty_due() -> None:
    """Duties go by time that passes."""
    clock, done = VirtualClock(), list[str]()
    maintenance = Maintenance([ScheduledTask("a", 10, lambda: done.append("a"))], clock)
    clock.jump(10**15)
    maintenance.step()
    assert not done


def test_it_stops_at_once() -> None:
    """A thread that waits for the next duty ends when it is asked to; without duties there is nothing to wait for."""
    did = Event()
    clock = VirtualClock()
    maintenance = Maintenance([ScheduledTask("now", 0, did.set)], clock)
    maintenance.start()
    assert did.wait(10)
    maintenance.stop()
    idle = Maintenance([], clock)
    assert idle.step() == 3600
    idle.start()
    idle.stop()


def test_failing_tasks_are_reported_until_they_succeed() -> None:
    """A task is marked after a failed run, and no longer after a successful one."""
    clock, failing, errors = VirtualClock(), dict[str, bool](), [OSError("disk full")]

    def fail() -> None:
        if errors:
            raise errors.pop()

    maintenance = Maintenance(
        [ScheduledTask("fails", 10, fail), ScheduledTask("works", 10, lambda: None)], clock, failing
    )
    assert failing == {"fails": False, "works": False}
    for expected in (True, False):
        clock.advance_s(10)
        maintenance.step()
        assert failing == {"fails": expected, "works": False}


KEEP = Retention(30 * SETTLED_NS, 30 * SETTLED_NS, 30 * SETTLED_NS, 30 * SETTLED_NS)
HOUR_NS = SETTLED_NS // 24


def sampled_store(days: int) -> tuple[MemoryStore, int]:
    """Return a store with an audit entry and a sample in each hour of a number of days, and the time after them."""
    store = MemoryStore()
    store.lead("test")
    for at_ns in range(HOUR_NS, days * SETTLED_NS, HOUR_NS):
        store.commit([Change(insert=[audit_entry(at_ns=at_ns), cluster_sample(at_ns=at_ns)])])
    return store, days * SETTLED_NS


def test_a_clock_that_jumps_forward_removes_nothing() -> None:
    """After a jump by years nothing is removed, also once there are samples by the wrong clock, for a day."""
    store, now_ns = sampled_store(20)
    before = len(store.audit(0, 1000))
    jumped_ns = now_ns + 1000 * SETTLED_NS
    for at_ns in range(jumped_ns, jumped_ns + SETTLED_NS, HOUR_NS):
        with pytest.raises(UnavailableError, match="Check the clock"):
            prune(store, KEEP, at_ns)
        store.commit([Change(insert=[cluster_sample(at_ns=at_ns)])])
    assert len(store.audit(0, 1000)) == before
    assert sum(prune(store, KEEP, now_ns).values()) == 0, "the clock is right again"
    assert len(store.audit(0, 1000)) == before


def test_pruning_resumes_a_day_after_a_long_downtime() -> None:
    """Whatever the length of a downtime, old records are removed again once the clock has run for a day."""
    store, now_ns = sampled_store(20)
    now_ns += 100 * SETTLED_NS
    for at_ns in range(now_ns, now_ns + SETTLED_NS + HOUR_NS, HOUR_NS):
        store.commit([Change(insert=[cluster_sample(at_ns=at_ns)])])
    assert prune(store, KEEP, now_ns + SETTLED_NS + HOUR_NS)["audit"] == 20 * 24 - 1


@pytest.mark.parametrize("days", [1, 40])
def test_a_clock_that_runs_evenly_is_trusted(days: int) -> None:
    """Without a gap, old records are removed, in a new installation too."""
    store, now_ns = sampled_store(days)
    assert prune(store, KEEP, now_ns)["audit"] == max(0, days - 30) * 24 - (days > 30)


def test_without_samples_the_clock_is_trusted() -> None:
    """An installation without clusters has no samples, and removes old records."""
    store = MemoryStore()
    store.lead("test")
    store.commit([Change(insert=[audit_entry(at_ns=1)])])
    assert prune(store, KEEP, 1000 * SETTLED_NS)["audit"] == 1
