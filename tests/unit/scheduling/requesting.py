"""Helpers that filter and place jobs on a snapshot."""

from __future__ import annotations

import numpy as np

from seaway.domain.cluster import Cluster
from seaway.domain.job import Job
from seaway.domain.network import Link
from seaway.domain.node import Node
from seaway.domain.placement import DeviceSlice, Placement
from seaway.scheduling.columns import CLUSTERS_ALLOWED
from seaway.scheduling.framework import Cycle
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plain import PlainPlacer
from seaway.scheduling.plan import Plan
from seaway.scheduling.plugins import rules_of_fit
from seaway.scheduling.policies.bestfit import BestFit
from seaway.scheduling.profile import Profile, WeightedPlugin
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.statement import Statement
from seaway.testing.plugins import fleet

PROFILE = Profile("test", (*(WeightedPlugin(rule) for rule in rules_of_fit()), WeightedPlugin(BestFit())))
"""The filters and one score."""


def snapshot_of(*parts: Node | Cluster, links: tuple[Link, ...] = ()) -> Snapshot:
    """Create a fleet of `parts` and return a snapshot of it."""
    return Snapshot(fleet(*parts, links=links))


def cycle_for(snapshot: Snapshot, job: Job) -> Cycle:
    """Begin a scheduling cycle."""
    return Cycle(
        snapshot=snapshot,
        job=job,
        replica=0,
        demand_index=snapshot.demands.index(job.demand),
        random_bits=0,
        usable=snapshot.arrays.clusters_open[CLUSTERS_ALLOWED] != 0,
        feasible=np.ones(len(snapshot.nodes), np.bool_),
    )


def refusals(snapshot: Snapshot, job: Job) -> list[str]:
    """Return for each node the reason of the first filter that rejects it, empty where it passes."""
    cycle = cycle_for(snapshot, job)
    first = [""] * len(snapshot.nodes)
    for plugin in rules_of_fit():
        for n, code in enumerate(plugin.filter(cycle)):
            first[n] = first[n] or (plugin.reasons[code - 1] if code else "")
    return first


def place(snapshot: Snapshot, *jobs: Job) -> list[Placement]:
    """Place `jobs` one after the other; return the nodes of the placed replicas."""
    statement = Statement(snapshot, JobQueue(snapshot, jobs))
    PlainPlacer(PROFILE).place(statement, 0, len(jobs))
    plan: Plan = statement.commit()
    return list(plan.placements())


def slices(snapshot: Snapshot, job: Job) -> list[DeviceSlice]:
    """Place one job and return all its slices, in the order of allocation."""
    return [each for placement in place(snapshot, job) for each in placement.slices]
