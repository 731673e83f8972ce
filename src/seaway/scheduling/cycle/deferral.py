"""Deferral of jobs by their policies, and its end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy

from seaway.scheduling.cycle.jobs import Entry, Kind

NS_PER_S = 1_000_000_000

AGAIN_NS = 5_000_000_000
"""Time after which deferred jobs are tried again without a change, since the reason may no longer apply."""


class Deferral:
    """Start of the deferral of each job, by its policy or behind an equal deferred job.

    The time limit counts from then until the job is placed or leaves the queue. Events in between do not extend it.
    While a job is overdue, equal jobs before it are not deferred either, since they would block it. There is one
    deadline per waiting job, checked every `AGAIN_NS`.

    Parameters
    ----------
    now_ns
        Monotonic clock.
    longest_s
        Maximum deferral of a job, seconds; 0 disables deferral.
    """

    def __init__(self, now_ns: Callable[[], int], longest_s: float) -> None:
        self._now_ns = now_ns
        self._longest_ns = int(longest_s * NS_PER_S)
        self._why: dict[Kind, str] = {}
        self._since_ns: dict[str, int] = {}
        self._overdue: defaultdict[Kind, set[str]] = defaultdict(set)
        self._again_ns: int | None = None

    def fork(self, now_ns: Callable[[], int]) -> Deferral:
        """Return the same deferrals on another clock."""
        twin = copy(self)
        twin._unshare(now_ns)  # noqa: SLF001  # of this class
        return twin

    def _unshare(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._why, self._since_ns = self._why.copy(), self._since_ns.copy()
        self._overdue = defaultdict(set, {kind: jobs.copy() for kind, jobs in self._overdue.items()})

    def overdue(self, batch: Sequence[Entry]) -> frozenset[int]:
        """Return the indices of the jobs of a batch that must not be deferred further."""
        if not self._longest_ns:
            return frozenset(range(len(batch)))
        found, met = set(), Counter[Kind]()
        for at, entry in enumerate(batch):
            late = self._overdue.get(entry.kind, ())
            if len(late) > met[entry.kind]:
                found.add(at)
                met[entry.kind] += entry.id in late
        return frozenset(found)

    def note(self, batch: Sequence[Entry], held: Mapping[int, str]) -> None:
        """Record the deferred jobs of a batch, with the reasons."""
        now_ns = self._now_ns()
        for entry in batch:
            self._why.pop(entry.kind, None)
        for at, why in held.items():
            self._why[batch[at].kind] = why
            self._since_ns.setdefault(batch[at].id, now_ns)
        if held and self._again_ns is None:
            self._again_ns = now_ns + AGAIN_NS

    def placed(self, entry: Entry) -> None:
        """Record that a job was placed, which ends its deferral."""
        self._since_ns.pop(entry.id, None)
        self._overdue.get(entry.kind, set()).discard(entry.id)

    def why(self, kind: Kind) -> str:
        """Return why jobs of a kind are deferred; empty if they are not."""
        return self._why.get(kind, "")

    @property
    def due_ns(self) -> int | None:
        """Monotonic time of the next try; None if no job is deferred."""
        return self._again_ns

    def due(self, waiting: Iterable[Entry]) -> bool:
        """Report whether deferred jobs are due for another try; drop the state of jobs that do not wait."""
        now_ns = self._now_ns()
        if self._again_ns is None or now_ns < self._again_ns:
            return False
        known, why = self._since_ns, self._why
        self._since_ns, self._why, self._overdue = {}, {}, defaultdict(set)
        for entry in waiting:
            job_id, kind = entry.id, entry.kind
            if kind in why:
                self._why[kind] = why[kind]
            elif job_id not in known:
                continue
            since_ns = self._since_ns[job_id] = known.get(job_id, now_ns)
            if now_ns - since_ns >= self._longest_ns:
                self._overdue[kind].add(job_id)
        self._again_ns = now_ns + AGAIN_NS if self._since_ns else None
        return bool(self._why)
