"""Strays as they are shown: like attempts of jobs that nobody knows, which no policy placed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seaway.application.control.fleet import LiveCluster
from seaway.application.records import Attempt
from seaway.domain.deployment import OVER, Copy, ReplicaStatus
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.lifecycle import AttemptState
from seaway.domain.placement import Placement


def held_by_strays(live: LiveCluster) -> list[Attempt]:
    """Return what strays hold in a cluster: for each replica an attempt without a policy, of a job without a tenant."""
    there = lives(stray.copy for stray in live.strays.values())
    return [_attempt(copy, replica) for copy in there for replica in copy.replicas]


def lives(copies: Iterable[Copy]) -> Iterator[Copy]:
    """Leave out what ended, and holds nothing any more."""
    return (copy for copy in copies if copy.phase not in OVER)


def _attempt(copy: Copy, replica: ReplicaStatus) -> Attempt:
    demand = Demand(ResourceRequest(replica.cpu_milli, replica.memory_mib))
    return Attempt(
        job_id=copy.job_id,
        number=copy.attempt,
        state=AttemptState.RUNNING,
        spec=JobSpec(copy.name, demand, tenant=""),
        policy="",
        placements=(Placement(copy.name, replica.replica, copy.cluster, replica.node, replica.slices),),
        created_ns=0,
        expires_ns=0,
    )
