"""Time limits of a cluster's view."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from seaway.adapters.kubernetes.collect.pod_status import Wait

UNREACHABLE_TIMEOUT_S = 10.0
UNSCHEDULABLE_TIMEOUT_S = 5.0

UNREACHABLE_TIMEOUT_SHARE = 2 / 3
"""Share of the time after which an unreachable cluster gets no new work. The error is reported before that."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits of a cluster's view.

    Attributes
    ----------
    unreachable_timeout_s
        Time for which a source may fail before the cluster counts as unreachable. The age of its data, which decides
        about
        its jobs, counts from the first failure.
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
        """Return how long a pod may wait for something, in seconds."""
        if wait is Wait.SCHEDULER:
            return self.scheduling_delay_s
        return (
            self.pod_start_timeout_s
            if wait in {Wait.USER_FIX, Wait.PROVISIONING, Wait.PREEMPTION}
            else self.unschedulable_timeout_s
        )


K = TypeVar("K", bound=Hashable)


class Debounce(Generic[K]):
    """Timers of ongoing conditions.

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
        """Start the timer of a condition. The same condition does not restart the timer; another one does.

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
