"""Past use of queues and tenants, and past runs of jobs.

Both are computed again from stored attempts at each start, so they survive restarts, restores and changes of leader.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from weakref import WeakKeyDictionary, WeakSet

from seaway.application.control.fleet import Key
from seaway.application.control.settings import ControlSettings
from seaway.application.histogram import Timing
from seaway.application.ports.clock import Clock
from seaway.application.records import CompletedRun, EndedUse
from seaway.domain.attempt import Attempt
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.queueing.past_durations import PastDurations, PastRuns
from seaway.scheduling.queueing.past_use import PastUse
from seaway.scheduling.queueing.tree import QueueTree

NS_PER_S = 1_000_000_000

MAX_DECAY_INTERVAL_S = 30.0
"""Maximum time between two updates of past use, seconds."""

HALF_LIVES = 10
"""Number of half-lives after which a use is forgotten."""


class History:
    """Past use for shares, and past runs from which durations are learned.

    Attributes
    ----------
    duration_error
        Differences between learned durations, as of the start of the attempt, and real ones.
    """

    def __init__(self, clock: Clock, settings: ControlSettings) -> None:
        self._clock = clock
        self._half_life_s = settings.usage_half_life_s
        self._learns = settings.learn_durations
        self.duration_error = Timing()
        self.clear()

    def clear(self) -> None:
        """Drop everything except the errors."""
        self._use = PastUse(self._half_life_s) if self._half_life_s else None
        self._decayed_s = -math.inf
        self._durations = PastDurations()
        self._learned: dict[Key, tuple[PastRuns, int | None]] = {}  # past runs, and expected seconds at the start
        self._waiting: WeakKeyDictionary[PastRuns, WeakSet[Entry]] = WeakKeyDictionary()

    def since_ns(self) -> int | None:
        """Return the time since which ended attempts count in shares; None if none do."""
        return self._clock.now_ns() - int(HALF_LIVES * self._half_life_s * NS_PER_S) if self._half_life_s else None

    def load(self, uses: Iterable[EndedUse], runs: Iterable[CompletedRun]) -> None:
        """Add stored uses and runs."""
        for run in sorted(runs, key=lambda run: run.ended_ns):
            past = self._durations.of(run.tenant, run.user, run.name)
            self._durations.add(past, (run.ended_ns - run.running_ns) / NS_PER_S)
        if self._use:
            now_s = self._clock.now_ns() / NS_PER_S
            for use in uses:
                began_s, ended_s = use.created_ns / NS_PER_S, use.ended_ns / NS_PER_S
                self._use.add((use.queue, use.tenant), use.amounts, began_s, ended_s, now_s)

    # Past use.

    def decay(self, tree: QueueTree, attempts: Collection[Attempt]) -> None:
        """Update the past use in the tree, if it is due."""
        if self._use is None:
            return
        now_s = self._clock.now_ns() / NS_PER_S
        if abs(now_s - self._decayed_s) < min(MAX_DECAY_INTERVAL_S, max(1.0, self._half_life_s / 100)):
            return
        if self._decayed_s == -math.inf:
            for attempt in attempts:  # running ones, up to now
                lane = attempt.spec.queue, attempt.spec.tenant
                self._use.add(lane, attempt.amounts, attempt.created_ns / NS_PER_S, now_s, now_s)
        self._decayed_s = now_s
        self._use.advance(now_s, tree.uses())
        tree.set_past(self._use.means())

    # Past runs.

    def runs(self, spec: JobSpec, user: str) -> PastRuns | None:
        """Return the past runs from which the duration of a job is learned; None if it is known, or not learned."""
        if not self._learns or spec.restarts or spec.max_duration_s is not None:
            return None
        return self._durations.of(spec.tenant, user, spec.name)

    def waits(self, entry: Entry) -> None:
        """Record a waiting job, which `learn` returns if it becomes of another kind."""
        if entry.past:
            self._waiting.setdefault(entry.past, WeakSet()).add(entry)

    def started(self, attempt: Attempt, user: str) -> None:
        """Record what an attempt is expected to take."""
        if runs := self.runs(attempt.spec, user):
            self._learned[attempt.job_id, attempt.number] = runs, runs.expected_s

    def expected_s(self, key: Key) -> int | None:
        """Return the learned duration of an attempt; None if it is unknown."""
        runs, _ = self._learned.get(key, (None, None))
        return runs.expected_s if runs else None

    @property
    def typical_s(self) -> int | None:
        """Duration that stands for unknown ones in plans of expected starts, seconds; None if none is learned."""
        return self._durations.typical_s if self._learns else None

    def learn(self, job: JobRecord, attempt: Attempt) -> Iterable[Entry]:
        """Learn from the run of a job that completed, and count the error of its own learned duration.

        Return waiting jobs whose duration is of another class now.
        """
        if not self._learns or job.ended_ns is None or attempt.running_ns is None:
            return ()
        ran_s = (job.ended_ns - attempt.running_ns) / NS_PER_S
        _, expected_s = self._learned.get((job.id, attempt.number), (None, None))
        if expected_s is not None:
            self.duration_error.note(abs(ran_s - expected_s))
        past = self._durations.of(job.spec.tenant, job.submitted_by, job.spec.name)
        return list(self._waiting.pop(past, ())) if self._durations.add(past, ran_s) else ()

    def ended(self, key: Key) -> None:
        """Forget an attempt that ended."""
        self._learned.pop(key, None)
