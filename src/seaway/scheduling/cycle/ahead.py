"""What a cycle would do: its decisions take effect on a fork, and jobs that make room are gone at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.scheduling.cycle.cycle import Cycle
from seaway.scheduling.cycle.displace import Claim
from seaway.scheduling.cycle.fork import Fork
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.resize import Resizer
from seaway.scheduling.queueing.tree import Key

MAX_CLAIMS = 100
"""Maximum number of jobs for which others make room. Those of one call of `Preemptor.claims` may exceed it."""


@dataclass(slots=True)
class Ahead:
    """A cycle on a fork, and what it has done.

    Attributes
    ----------
    resizer
        Resizes of jobs in the fork.
    waits
        Returns a job whose attempt ended as it waits again.
    ended
        Attempts that were displaced, with the job that displaced each.
    shrunk
        Replicas that left, each with the job that takes its place, by attempt.
    """

    fork: Fork
    cycle: Cycle
    resizer: Resizer
    waits: Callable[[JobRecord], Entry]
    ended: dict[Key, Entry] = field(default_factory=dict)
    shrunk: defaultdict[Key, dict[int, Entry]] = field(default_factory=lambda: defaultdict(dict))
    _claimed: int = 0

    def decide(self) -> None:
        """Decide until no more jobs start now, nor displace others, and no running ones are resized."""
        self.cycle.preemptor.retry()
        while True:
            self.start_all()
            claims = self.cycle.claims()
            self._apply(claims)
            self._claimed += len(claims)
            if self._claimed >= MAX_CLAIMS or not (claims or self.cycle.preemptor.searches):
                break
        self.start_all()
        grows = self.fork.waiting.idle and not self.cycle.preemptor.awaited
        while resizes := self.resizer.next(grows=grows):
            for each in resizes:
                self.fork.resize(each.after)
                if each.before.spec.elastic:
                    self.fork.rest_from_resizes(each.job)

    def start_all(self) -> None:
        """Start all jobs that fit."""
        self.cycle.begin()
        while True:
            for each in self.cycle.next():
                self.fork.run(each.attempt)
            if self.fork.waiting.idle:
                break

    def stop(self, key: Key) -> None:
        """End an attempt. Its job waits again."""
        attempt = self.fork.end(key)
        job = self.fork.jobs[key[0]]
        if job.attempt == attempt.number and job.state.placed:
            record = replace(job, state=JobState.PREEMPTED)
            self.fork.submit(record, self.waits(record))

    def _apply(self, claims: Sequence[Claim]) -> None:
        self.cycle.preemptor.settle(claims, [True] * len(claims))
        for claim in claims:
            for _, after in claim.shrinks:
                self.fork.resize(after)
            for victim in claim.victims:
                if victim.whole:
                    self.shrunk[victim.job_key].update(dict.fromkeys(victim.replicas, claim.entry))
        for claim in claims:
            for victim in claim.ends:
                self.ended[victim.key] = claim.entry
                self.shrunk.pop(victim.key, None)
                self.stop(victim.key)
