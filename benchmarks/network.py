"""Benefit of network awareness: policies with and without the network filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

from benchmarks.data import SEEDS, with_mix
from benchmarks.quality import policies
from benchmarks.record import Result
from seaway.bootstrap.policies import policy_of
from seaway.domain.cluster import Fleet
from seaway.domain.job import Job
from seaway.domain.network import NO_NEED
from seaway.learning.evaluation.contestants import OFFERS
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import Level, PolicyOptions
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.encode import link_meets
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.replay import replay

KIND = "network-3"

NOTES = [
    "jobs placed whose link keeps their bounds, mean of five instances of 80 jobs; policies learn from the other four",
    "blind: the same policy without the network filter. A job whose link misses a bound holds its devices and counts "
    "not; of bandwidth a link gives each, in order of arrival, what is left, or the job misses its bound",
    "missed: jobs that a blind policy put where their link misses a bound",
]


def network(seed: int) -> Result:
    """Count jobs on network-3 whose bounds are met, by policy, with and without the network filter."""
    rows = []
    for name, level in policies():
        row: dict[str, Any] = {"policy": name, "level": level}
        looking = [_aware(name, level, number, seed) for number in SEEDS]
        blind = [_blind(name, level, number, seed) for number in SEEDS]
        if None not in looking:
            row |= {f"seed{number}": each for number, each in zip(SEEDS, looking, strict=True)}
            row["aware"] = round(fmean(each for each in looking if each is not None), 1)
        row["blind"] = round(fmean(met for met, _ in blind), 1)
        row["missed"] = round(fmean(missed for _, missed in blind), 1)
        rows.append(row)
    rows.sort(key=lambda row: -row.get("aware", row["blind"]))
    return Result("network", rows, NOTES)


def _aware(name: str, level: Level, number: int, seed: int) -> int | None:
    """Return the number of jobs that a policy places; None for a policy without network filter."""
    trace = with_mix(KIND, number)
    options = PolicyOptions(level, seed, trace.mix)
    if not isinstance(policy_of(name, options), Profile):
        return None
    return replay(trace.fleet, trace.jobs, partial(policy_of, name, options), offers=OFFERS).counts.placed


def _blind(name: str, level: Level, number: int, seed: int) -> tuple[int, int]:
    """Return the numbers of jobs with met and with missed bounds, if the policy does not see bounds."""
    trace = with_mix(KIND, number)
    policy = policy_of(name, PolicyOptions(level, seed, trace.mix))
    snapshot = Snapshot(trace.fleet)
    unbound = [replace(job, demand=replace(job.demand, gateway="", network=NO_NEED)) for job in trace.jobs]
    plan = decide(snapshot, JobQueue(snapshot, unbound), policy, overdue=range(len(unbound)))
    homes: dict[str, list[str]] = {job.name: [] for job in trace.jobs}
    for placement in plan.placements():
        homes[placement.job].append(placement.cluster)
    placed = [(job, homes[job.name]) for job in trace.jobs if homes[job.name]]
    met = met_by_links(trace.fleet, placed)
    return met, len(placed) - met


def met_by_links(fleet: Fleet, placed: Sequence[tuple[Job, Sequence[str]]]) -> int:
    """Return the number of jobs with a replica in a cluster whose link meets their bounds.

    Parameters
    ----------
    placed
        Jobs of one replica in order of arrival, and the clusters of their workloads. Each workload whose link meets its
        other bounds uses its bandwidth, as long as the link has that much free.
    """
    links = {(link.source, link.target): link for link in fleet.links}
    left = {ends: link.free_mbps for ends, link in links.items()}
    doors = {cluster.name: cluster.gateway for cluster in fleet.clusters}
    met = 0
    for job, clusters in placed:
        need, good = job.demand.network, 0
        for ends in ((job.demand.gateway, doors[cluster]) for cluster in clusters):
            if not need.any or ends[0] == ends[1]:
                good += 1
            elif link_meets(need, links.get(ends)) and left[ends] >= need.min_bandwidth_mbps:
                left[ends] -= need.min_bandwidth_mbps
                good += 1
        met += good > 0
    return met
