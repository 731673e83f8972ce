"""The watchdog stops runs at their time limits, with one thread."""

from __future__ import annotations

import os
import threading
from time import monotonic

import pytest

from seaway.learning.policies.session import WATCHDOG, Watchdog

LONG_S = 30.0
"""Far longer than any of these tests takes."""

SHORT_S = 0.02


class Run:
    """Run that records a request to stop."""

    def __init__(self) -> None:
        self.reported = threading.Event()

    @property
    def terminate(self) -> bool:
        """A check whether it was asked to stop."""
        return self.reported.is_set()

    @terminate.setter
    def terminate(self, reported: bool) -> None:
        assert reported
        self.reported.set()


class Clock:
    """Clock that counts calls by thread."""

    def __init__(self) -> None:
        self.asked: dict[str, int] = {}

    def __call__(self) -> float:
        """Return it."""
        name = threading.current_thread().name
        self.asked[name] = self.asked.get(name, 0) + 1
        return monotonic()


def test_only_runs_beyond_their_limit_are_stopped() -> None:
    """Each run has its own limit, in any order."""
    watchdog = Watchdog()
    endless, late, soon = Run(), Run(), Run()
    with watchdog.over(endless, LONG_S), watchdog.over(late, 2 * SHORT_S), watchdog.over(soon, SHORT_S):
        assert soon.reported.wait(LONG_S)
        assert late.reported.wait(LONG_S)
    assert not endless.terminate


def test_completed_runs_are_not_stopped() -> None:
    """A later run is stopped, and the completed one is not."""
    watchdog = Watchdog()
    ended, failed, after = Run(), Run(), Run()
    with watchdog.over(ended, SHORT_S):
        pass
    with pytest.raises(ZeroDivisionError), watchdog.over(failed, SHORT_S):
        raise ZeroDivisionError
    with watchdog.over(after, 2 * SHORT_S):
        assert after.reported.wait(LONG_S)
    assert not ended.terminate
    assert not failed.terminate


def test_runs_of_several_threads_are_watched() -> None:
    """Each run is stopped at its own time limit."""
    watchdog = Watchdog()
    reported: list[bool] = []

    def run() -> None:
        own = Run()
        with watchdog.over(own, SHORT_S):
            reported.append(own.reported.wait(LONG_S))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(LONG_S)
    assert reported == [True] * 8


def test_consecutive_runs_do_not_wake_the_watchdog() -> None:
    """Its thread only checks at the first run, and when that run would be due."""
    clock = Clock()
    watchdog = Watchdog(clock)
    for _ in range(1000):
        with watchdog.over(Run(), LONG_S):
            pass
    asked = {name: count for name, count in clock.asked.items() if name != threading.current_thread().name}
    assert list(asked) in ([], ["watchdog"])  # it may not have come to its turn yet
    assert sum(asked.values()) < 20  # as often as it came to its turn between two of them, which is seldom


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_its_own_watchdog() -> None:
    """Threads do not survive a fork, and the lock may be held at that time."""
    with WATCHDOG.over(Run(), LONG_S), WATCHDOG._lock:  # noqa: SLF001  # as another thread may hold it just then
        child = os.fork()
        if not child:
            try:
                own = Run()
                with WATCHDOG.over(own, SHORT_S):
                    os._exit(0 if own.reported.wait(LONG_S) else 1)
            finally:
                os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    after = Run()
    with WATCHDOG.over(after, SHORT_S):
        assert after.reported.wait(LONG_S)
