"""Rules that keep jobs waiting, computed on a copy of the fleet when metrics are scraped, outside the control loop."""

from __future__ import annotations

from collections import Counter
from threading import Lock

from seaway.application.control.loop import Controller
from seaway.application.whatif.dry_run import DryRuns
from seaway.domain.errors import UnavailableError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import WAITING
from seaway.scheduling.cycle.jobs import Kind

MAX_KINDS = 12
"""Maximum number of examined kinds of jobs, most frequent first. Jobs of other kinds count as `OTHERS`."""

CACHE_NS = 10_000_000_000
"""Lifetime of the cached result, nanoseconds."""

PAUSED, POLICY, GATEWAY, HELD, ROOM, OTHERS = "paused", "policy", "gateway", "held", "room", "others"
"""Other reasons to wait.

In this order: a back-off or a pending removal; a policy that is being compiled; an unknown gateway. Then a deferral by
the policy; replicas that do not fit together, or reserved capacity; kinds of jobs that were not examined.
"""


class WaitingRules:
    """Number of waiting jobs by the rule that excludes most nodes. Thread-safe."""

    def __init__(self, controller: Controller, tries: DryRuns) -> None:
        self._controller = controller
        self._tries = tries
        self._lock = Lock()
        self._known: tuple[int, dict[str, int]] | None = None

    def counted(self) -> dict[str, int]:
        """Return the number of waiting jobs by rule or other reason."""
        now_ns = self._controller.live.clock.monotonic_ns()
        with self._lock:
            if self._known is None or now_ns - self._known[0] >= CACHE_NS:
                try:
                    self._known = (now_ns, self._count())
                except UnavailableError:  # the state is being read again
                    return {}
            return self._known[1]

    def _count(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        kinds, first = self._kinds(found)
        for kind, count in kinds.most_common()[:MAX_KINDS]:
            found[self._rule(first[kind])] += count
        found[OTHERS] = sum(count for _, count in kinds.most_common()[MAX_KINDS:])
        return dict(found)

    def _kinds(self, found: Counter[str]) -> tuple[Counter[Kind], dict[Kind, JobRecord]]:
        """Count jobs by kind, with the first job of each kind. Jobs that are not tried count as `PAUSED`."""
        kinds: Counter[Kind] = Counter()
        first: dict[Kind, JobRecord] = {}
        with self._controller.lock:
            entries, jobs = list(self._controller.live.waiting.entries()), self._controller.live.jobs.copy()
        for each in entries:
            kinds[each.kind] += 1
            first.setdefault(each.kind, jobs[each.id])
        found[PAUSED] = sum(job.state in WAITING for job in jobs.values()) - len(entries)
        return kinds, first

    def _rule(self, job: JobRecord) -> str:
        if self._controller.scheduler.unready(job.spec.queue):
            return POLICY
        explanation = self._tries.explained(job)
        if explanation is None:
            return GATEWAY
        if not explanation.fits and explanation.refusals:
            return max(explanation.refusals, key=lambda each: each.nodes).plugin
        return HELD if explanation.deferral_reason else ROOM
