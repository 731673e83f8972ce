"""How a view of a cluster deals with what takes long."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from seaway.adapters.kubernetes.collect.pod_status import Wait

UNREACHABLE_TIMEOUT_S = 10.0
UNSCHEDULABLE_TIMEOUT_S = 5.0

UNREACHABLE_TIMEOUT_SHARE = 2 / 3
"""Of the time after which a silent cluster gets no new work: why it does not answer is said before that."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How a view deals with what takes long.

    Attributes
    ----------
    unreachable_timeout_s
        How long something of a cluster may not answer before nothing that it says counts any more. Its age, which
        decides what becomes of its jobs, begins earlier: with the first failure.
    unschedulable_timeout_s
        How long no node takes a pod before it is taken for refused: its cluster's scheduler may only be slow.
    pod_start_timeout_s
        How long a pod may hold devices that cannot start until a user mends it, or waits for its volumes or for room
        that is being made on a node, before it fails.
    scheduling_delay_s
        How long a pod waits for its cluster's scheduler before that is told.
    history_size
        Changes that cursors may point back over, at least.
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
        """Return those where a silent cluster gets no new work after so many seconds."""
        return cls(
            unreachable_timeout_s=min(UNREACHABLE_TIMEOUT_S, stale_after_s * UNREACHABLE_TIMEOUT_SHARE),
            unschedulable_timeout_s=unschedulable_timeout_s,
            pod_start_timeout_s=pod_start_timeout_s,
        )

    def of(self, wait: Wait) -> float:
        """Return how long a pod may wait for something, seconds."""
        if wait is Wait.SCHEDULER:
            return self.scheduling_delay_s
        return (
            self.pod_start_timeout_s
            if wait in {Wait.USER_FIX, Wait.PROVISIONING, Wait.PREEMPTION}
            else self.unschedulable_timeout_s
        )


K = TypeVar("K", bound=Hashable)


class Debounce(Generic[K]):
    """Keeps what goes on, and since when.

    Parameters
    ----------
    later
        Has something called after so many seconds.
    """

    def __init__(self, schedule: Callable[[float, Callable[[], None]], object]) -> None:
        self._later = schedule
        self._began: dict[K, tuple[Hashable, object]] = {}
        self._elapsed: set[K] = set()

    def __contains__(self, key: K) -> bool:
        """Tell whether something has gone on for as long as it had to."""
        return key in self._elapsed

    def begin(self, key: K, condition: Hashable, seconds: float, elapsed: Callable[[], None]) -> None:
        """Note what goes on; the same again changes nothing, something else starts over.

        Parameters
        ----------
        seconds
            How long it has to go on before it counts.
        elapsed
            Called when it does.
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
        """Note that nothing goes on any more."""
        self._began.pop(key, None)
        self._elapsed.discard(key)
