"""Hours: what is held for how long, in episodes whose jobs end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seaway.learning.episodes.books import UNTIMED, Books
from seaway.scheduling.columns import JOB_DEMAND
from seaway.scheduling.kernels.offer import first_nodes
from seaway.scheduling.queue import JobQueue
from seaway.scheduling.snapshot import Snapshot
from seaway.scheduling.state import Float64, copied
from seaway.simulation.measures import quantile, use, used_shares
from seaway.simulation.outcome import Counts, Curve, Outcome, Shares, Waits
from seaway.simulation.replay import last_of
from seaway.simulation.timeline import mean_over_time


class Hours:
    """Figures over time, as `seaway.simulation.timeline` has them.

    Parameters
    ----------
    snapshot, queue
        The fleet, with nothing on it yet, and the jobs in order of arrival.
    books
        What each job holds.
    """

    def __init__(self, snapshot: Snapshot, queue: JobQueue, books: Books) -> None:
        self._snapshot = snapshot
        self._queue = queue
        self._books = books
        self._empty = copied(snapshot.arrays)
        self.reset(0)

    def reset(self, now_s: int) -> None:
        """Begin anew at a time."""
        self._now_s = now_s
        self._held_milli = 0
        self._waits_s: dict[int, int] = {}
        self._points: list[tuple[int, int, int]] = []
        self._use_s: Float64 = np.zeros((4, len(self._snapshot.clusters)))

    def start(self, number: int, now_s: int) -> None:
        """Note that a job starts."""
        self._waits_s[number] = now_s - self._queue.jobs[number].arrives_s
        self._held_milli += self._books.cores_milli(number)

    def end(self, numbers: Sequence[int]) -> None:
        """Have some jobs end: what they hold is given back."""
        self._held_milli -= sum(map(self._books.cores_milli, numbers))
        self._books.give_back(numbers)

    def pass_to(self, now_s: int) -> None:
        """Let time pass; what is held now was held until then."""
        self._use_s += (now_s - self._now_s) * used_shares(self._snapshot.arrays.clusters)
        self._now_s = now_s

    def note(self, now_s: int, arrived: int, *, again: bool) -> None:
        """Add a point to the curve, or mend the last one."""
        if again:
            self._points.pop()
        self._points.append((now_s, self._books.asked_milli(arrived), self._held_milli))

    def outcome(self, policy: str, arrived: int) -> Outcome:
        """Return what came out of the first `arrived` jobs."""
        time_s, asked, held = np.array(self._points, np.int64).reshape(-1, 3).T
        curve = Curve(self._books.percent(asked), self._books.percent(held), time_s.astype(np.float64))
        span_s = int(time_s[-1] - time_s[0]) if time_s.size else 0
        shares = self._use_s / span_s if span_s else used_shares(self._snapshot.arrays.clusters)
        waits_s = np.array(list(self._waits_s.values()), np.float64)
        return Outcome(
            policy=policy,
            counts=self._counts(arrived),
            shares=Shares(last_of(curve.arrived_pct), mean_over_time(curve)),
            use=use(shares),
            speed=UNTIMED,
            curve=curve,
            waits=Waits(
                float(waits_s.mean()) if waits_s.size else None,
                quantile(waits_s, 0.5),
                quantile(waits_s, 0.99),
                span_s,
            ),
        )

    def _counts(self, arrived: int) -> Counts:
        """Count the jobs; one that never ran is refused if not even the empty fleet holds it."""
        left = [number for number in range(arrived) if number not in self._waits_s]
        firsts = np.zeros(len(self._snapshot.clusters), np.int64)
        demands, lines = self._snapshot.demands.arrays, self._queue.lines[:, JOB_DEMAND]
        refused = sum(first_nodes(self._empty, demands, int(lines[number]), firsts) == 0 for number in left)
        return Counts(arrived, len(self._waits_s), refused, len(left) - refused)
