"""Attempts of jobs: placements with their results.

Times are nanoseconds since 1970 by the wall clock; None for an event that has not happened.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from seaway.domain.amounts import NO_AMOUNTS, Amounts
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import AttemptState
from seaway.domain.placement import Placement

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Attempt:
    """One placement of a job, and its result.

    Attributes
    ----------
    number
        Number from 1. The job has the number of the latest attempt.
    spec
        Spec at the time of the placement; later changes of the job do not affect it.
    policy
        Policy that decided the placement.
    placements
        Node and devices of each replica.
    why
        Reason for the decision, one sentence.
    expires_ns
        Deadline for the confirmation by the clusters, while the placement is assumed.
    reason
        Reason for its end.
    amounts
        Amounts that it holds until its last allocation is released, by resource. They count in its queue.
    """

    job_id: str
    number: int
    state: AttemptState
    spec: JobSpec
    policy: str
    placements: tuple[Placement, ...]
    created_ns: int
    expires_ns: int
    why: str = ""
    reason: str = ""
    running_ns: int | None = None
    ended_ns: int | None = None
    amounts: Amounts = field(default_factory=lambda: NO_AMOUNTS)

    @property
    def remaining(self) -> tuple[Placement, ...]:
        """Placements of the replicas that are not being removed."""
        if any(each.leaving for each in self.placements):
            return tuple(each for each in self.placements if not each.leaving)
        return self.placements

    @property
    def holding(self) -> tuple[Placement, ...]:
        """Placements of the replicas that hold resources: those that have not completed."""
        if any(each.completed for each in self.placements):
            return tuple(each for each in self.placements if not each.completed)
        return self.placements

    @property
    def clusters(self) -> tuple[str, ...]:
        """Clusters, each once, in the order of the replicas."""
        if len(self.placements) == 1:
            return (self.placements[0].cluster,)
        return tuple(dict.fromkeys(placement.cluster for placement in self.placements))

    def expected_rest_ns(self, now_ns: int, learned_s: int | None = None) -> int | None:
        """Return the nanoseconds until its expected end by the wall clock; None without one.

        An attempt that exceeded its expected duration is expected to run for as long again as the excess. A learned
        duration that it exceeded is doubled until it does not.

        Parameters
        ----------
        learned_s
            Duration of past runs, for an attempt without an expected duration; None if unknown.
        """
        ran_ns = now_ns - (self.running_ns or now_ns)
        seconds = self.spec.max_duration_s
        if seconds is not None:
            return abs(seconds * NS_PER_S - ran_ns)
        if learned_s is None:
            return None
        learned_ns = learned_s * NS_PER_S
        return (learned_ns << max(0, ran_ns // learned_ns).bit_length()) - ran_ns

    def leaving(self, replicas: Collection[int]) -> Attempt:
        """Return the attempt with some replicas leaving."""
        placements = tuple(
            replace(each, leaving=True) if each.replica in replicas else each for each in self.placements
        )
        return replace(self, placements=placements).sized()

    def sized(self) -> Attempt:
        """Return the attempt with the number of its remaining replicas in its spec, unless these end one by one."""
        if self.spec.starts_in_part or self.spec.replicas == len(self.remaining):
            return self
        return replace(self, spec=self.spec.with_replicas(len(self.remaining)))
