"""Log of a cluster's changes with long polling, their limits, and problems in the data."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition
from time import monotonic, perf_counter
from typing import Generic, TypeVar

from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.pod_status import Wait
from seaway.adapters.kubernetes.device_plugins.views import Problem, ProblemKind
from seaway.application.ports.backend import ChangeLog
from seaway.domain.errors import UnavailableError
from seaway.domain.reasons import in_cluster

UNREACHABLE_TIMEOUT_S = 10.0
UNSCHEDULABLE_TIMEOUT_S = 5.0

UNREACHABLE_TIMEOUT_SHARE = 2 / 3
"""Fraction of `stale_after_s` after which a cluster counts as unreachable.

The error is therefore reported before the cluster gets no new work.
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits of a cluster's view.

    Attributes
    ----------
    unreachable_timeout_s
        Time for which a source may fail before the cluster counts as unreachable. The age of its data, which decides
        about its jobs, counts from the first failure.
    unschedulable_timeout_s
        Time for which a pod may be unschedulable before it counts as rejected: the cluster's scheduler may be slow.
    pod_start_timeout_s
        Time before a pod fails that waits for a fix by a user while it holds devices, for volumes, or for preemption.
    scheduling_delay_s
        Time for which a pod waits for the cluster's scheduler before that is reported.
    history_size
        Minimum number of changes that cursors can refer to.
    """

    unreachable_timeout_s: float = UNREACHABLE_TIMEOUT_S
    unschedulable_timeout_s: float = UNSCHEDULABLE_TIMEOUT_S
    pod_start_timeout_s: float = 300.0
    scheduling_delay_s: float = 3.0
    history_size: int = 20_000

    @classmethod
    def within(
        cls,
        stale_after_s: float,
        *,
        pod_start_timeout_s: float,
        unschedulable_timeout_s: float = UNSCHEDULABLE_TIMEOUT_S,
    ) -> Limits:
        """Return the limits for a cluster that gets no new work after `stale_after_s` without contact."""
        return cls(
            unreachable_timeout_s=min(UNREACHABLE_TIMEOUT_S, stale_after_s * UNREACHABLE_TIMEOUT_SHARE),
            unschedulable_timeout_s=unschedulable_timeout_s,
            pod_start_timeout_s=pod_start_timeout_s,
        )

    def of(self, wait: Wait) -> float:
        """Return the maximum time of a wait, in seconds."""
        if wait is Wait.SCHEDULER:
            return self.scheduling_delay_s
        return (
            self.pod_start_timeout_s
            if wait in {Wait.USER_FIX, Wait.PROVISIONING, Wait.PREEMPTION}
            else self.unschedulable_timeout_s
        )


K = TypeVar("K", bound=Hashable)


class Debounce(Generic[K]):
    """Timers of conditions that must last for a time.

    Parameters
    ----------
    schedule
        Schedules a call after a number of seconds.
    """

    def __init__(self, schedule: Callable[[float, Callable[[], None]], object]) -> None:
        self._later = schedule
        self._began: dict[K, tuple[Hashable, object]] = {}
        self._elapsed: set[K] = set()

    def __contains__(self, key: K) -> bool:
        """Report whether a condition has lasted for its time."""
        return key in self._elapsed

    def begin(self, key: K, condition: Hashable, seconds: float, elapsed: Callable[[], None]) -> None:
        """Start the timer of a condition. The same condition does not restart the timer; a different one does.

        Parameters
        ----------
        seconds
            Duration of the timer.
        elapsed
            Called when the time has elapsed.
        """
        if key in self._began and self._began[key][0] == condition:
            return
        self.end(key)
        mark = object()
        self._began[key] = (condition, mark)

        def lapse() -> None:
            if self._began.get(key) == (condition, mark):
                self._elapsed.add(key)
                elapsed()

        self._later(seconds, lapse)

    def end(self, key: K) -> None:
        """Stop the timer."""
        self._began.pop(key, None)
        self._elapsed.discard(key)


RELIST_DELAY_S = 1.0
"""Delay in seconds between a list and the full report. In that time, other kinds are listed and watches catch up."""

TIME_SLICE_S = 0.01
"""Maximum duration of one batch of updates on the event loop, in seconds."""

T = TypeVar("T")


class ChangeNotifier(Generic[K]):
    """Latest changes by key, and the threads that wait for changes. The event loop adds changes; threads read them.

    Parameters
    ----------
    cluster
        Name of the cluster.
    health
        Health of its sources.
    schedule
        Schedules a call on the event loop after a number of seconds.

    Attributes
    ----------
    lock
        Lock for every change and read of the view.
    """

    def __init__(
        self, cluster: str, health: Health, limits: Limits, schedule: Callable[[float, Callable[[], None]], object]
    ) -> None:
        self._cluster = cluster
        self._health = health
        self._unreachable_timeout_s = limits.unreachable_timeout_s
        self._schedule = schedule
        self._log: ChangeLog[K] = ChangeLog(limits.history_size)
        self._closed = False
        self._processing = False
        self._relist_scheduled = False
        self.lock = Condition()
        health.on_complete = self.wake

    @property
    def cursor(self) -> str:
        """Cursor behind the latest change."""
        return self._log.cursor

    def since(self, cursor: str, wait_s: float) -> dict[K, None] | None:
        """Return the changes since `cursor`, or None for a full report; see the port `Backend`. Hold the lock.

        During the first list, wait until it is complete, so that the caller gets one full report.
        """
        give_up_s = monotonic() + wait_s
        while True:
            left_s = give_up_s - monotonic()
            over = left_s <= 0 or self._closed
            if why := self._health.unreachable_reason(self._unreachable_timeout_s):
                if over or not self._health.listing:
                    raise UnavailableError(in_cluster(self._cluster, why))
            else:
                found = self._log.since(cursor)
                if found is None or found or over:
                    return found
            self.lock.wait(left_s)

    def add(self, key: K) -> None:
        """Record a change. Hold the lock."""
        self._log.add(key)
        if not self._processing:
            self.lock.notify_all()

    async def process(self, items: Iterable[T], take: Callable[[T], None]) -> None:
        """Process many items in time slices, so that other clusters can use the event loop.

        Waiting threads wake once per slice. Readers see every processed item immediately.
        """
        rest = iter(items)
        while self._process_slice(rest, take):
            await asyncio.sleep(0)

    def _process_slice(self, rest: Iterator[T], take: Callable[[T], None]) -> bool:
        """Process items for one time slice; return whether items remain."""
        end_s = perf_counter() + TIME_SLICE_S
        self._processing = True
        try:
            for each in rest:
                take(each)
                if perf_counter() >= end_s:
                    return True
            return False
        finally:
            self._processing = False
            self.wake()

    def schedule_relist(self) -> None:
        """Schedule a full report."""
        if not self._relist_scheduled:
            self._relist_scheduled = True
            self._schedule(RELIST_DELAY_S, self._clear)

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Schedule a call that holds the lock."""

        def locked() -> None:
            with self.lock:
                call()

        self._schedule(seconds, locked)

    def wake(self) -> None:
        """Wake waiting threads, so that they check the cluster's health."""
        with self.lock:
            self.lock.notify_all()

    def close(self) -> None:
        """End all waiting calls."""
        with self.lock:
            self._closed = True
            self.lock.notify_all()

    def _clear(self) -> None:
        with self.lock:
            self._relist_scheduled = False
            self._log.clear()
            self.lock.notify_all()


log = logging.getLogger(__name__)


class Problems:
    """Problems by kind and name of the object, such as ``node`` and ``n1``, or ``pod`` and ``default/p``.

    Parameters
    ----------
    cluster
        Name of the cluster.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._found: dict[str, tuple[Problem, ...]] = {}
        self._unreadable: defaultdict[str, dict[str, bool]] = defaultdict(dict)
        """Objects that cannot be decoded, with a mark for those seen since the last full list."""

    def put(self, kind: str, name: str, problems: tuple[Problem, ...] = ()) -> None:
        """Replace the problems of an object, and log new ones."""
        where = f"{kind}/{name}"
        if not problems and where not in self._found:
            return
        self._unreadable[kind].pop(name, None)
        before = self._found.pop(where, ())
        if problems:
            self._found[where] = problems
        for each in problems:
            if each not in before:
                log.warning("%s: %s, %s: %s", self._cluster, where, each.where, each.text)

    @contextmanager
    def unreadable(self, kind: str, name: str, text: str) -> Iterator[None]:
        """Record that an object cannot be decoded. The body of the context may remove other data of the object."""
        said = self._found.get(f"{kind}/{name}", ())
        yield
        if not name:
            log.warning("%s: %s without a name cannot be read: %s", self._cluster, kind, text)
            return
        if said:
            self._found[f"{kind}/{name}"] = said
        self.put(kind, name, (Problem(ProblemKind.BROKEN, "object", f"cannot be read: {text}"),))
        self._unreadable[kind][name] = True

    def unreadable_names(self, kind: str) -> set[str]:
        """Return the undecodable objects of a kind that were seen since the previous full list."""
        return {name for name, again in self._unreadable[kind].items() if again}

    def listed(self, kind: str) -> None:
        """Record a full list of a kind: remove undecodable objects that the list does not contain."""
        for name, again in list(self._unreadable[kind].items()):
            if again:
                self._unreadable[kind][name] = False
            else:
                self.put(kind, name)

    def all(self) -> dict[str, tuple[Problem, ...]]:
        """Return the problems by ``kind/name``."""
        return dict(self._found)

    def counts(self) -> dict[str, int]:
        """Return the number of problems of each kind."""
        found = Counter(each.kind for problems in self._found.values() for each in problems)
        return {kind.value: found[kind] for kind in ProblemKind}
