"""Progress of elastic jobs, whose replicas share their work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from seaway.domain.attempt import NS_PER_S, Attempt
from seaway.scheduling.queueing.tree import Key


@dataclass(slots=True)
class _Progress:
    """Number of replicas since a monotonic time, and the work before that, replicas times nanoseconds."""

    replicas: int
    since_ns: int
    done_ns: int = 0


class ElasticWork:
    """Work that attempts of elastic jobs have done.

    The expected duration of an elastic job is that with its minimum of replicas. With twice as many, the rest takes
    half the time.

    Parameters
    ----------
    now_ns
        Monotonic clock.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._progress: dict[Key, _Progress] = {}

    def fork(self, now_ns: Callable[[], int]) -> ElasticWork:
        """Return the same work on another clock, which changes on its own."""
        twin = ElasticWork(now_ns)
        twin._progress = {key: replace(each) for key, each in self._progress.items()}  # of this class
        return twin

    def clear(self) -> None:
        """Drop all attempts."""
        self._progress.clear()

    def drop(self, key: Key) -> None:
        """Drop an attempt that ended."""
        self._progress.pop(key, None)

    def note(self, key: Key, attempt: Attempt, began_ns: int | None) -> None:
        """Record the number of replicas of an attempt from now on.

        Parameters
        ----------
        began_ns
            Monotonic time at which it began to run; None if it has not. One of which nothing is known had as many
            replicas since then.
        """
        if began_ns is None or not attempt.spec.elastic:
            return
        now_ns, replicas = self._now_ns(), _working(attempt)
        known = self._progress.setdefault(key, _Progress(replicas, began_ns))
        if known.replicas != replicas:
            known.done_ns += known.replicas * (now_ns - known.since_ns)
            known.replicas, known.since_ns = replicas, now_ns

    def rest_ns(self, key: Key, attempt: Attempt) -> int | None:
        """Return the nanoseconds until the expected end of an elastic attempt; None if it is unknown, or for others.

        Beyond the expected work, it is expected to do as much again as the excess.
        """
        known, expected_s = self._progress.get(key), attempt.spec.expected_duration_s
        if known is None or expected_s is None:
            return None
        done_ns = known.done_ns + known.replicas * (self._now_ns() - known.since_ns)
        return abs(expected_s * attempt.spec.least_replicas * NS_PER_S - done_ns) // known.replicas


def _working(attempt: Attempt) -> int:
    return max(1, sum(not (each.leaving or each.completed) for each in attempt.placements))
