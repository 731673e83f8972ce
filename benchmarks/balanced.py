"""The policy `balanced` against each single aim: free resources, distance, topology, hardware and price."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from statistics import fmean
from typing import Any

from benchmarks.data import ORDERS, openb
from benchmarks.record import Result
from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.domain.facts import Facts, Location
from seaway.domain.job import Job
from seaway.domain.network import Gateway
from seaway.domain.node import Node
from seaway.domain.placement import Placement
from seaway.scheduling.engine import Policy, decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.balanced import distance_ns
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.demo import demo_fleet, demo_jobs
from seaway.simulation.replay import arrivals_until_requested

AIMS = ("free", "distance", "topology", "hardware", "price")
SITES = {
    "frankfurt": (50.11, 8.68, 1.0),
    "dublin": (53.35, -6.26, 0.95),
    "stockholm": (59.33, 18.07, 0.8),
    "virginia": (38.95, -77.45, 0.9),
    "oregon": (45.52, -122.68, 0.85),
    "singapore": (1.35, 103.82, 1.2),
}
"""Regions of the cut fleet, with two zones and a cluster in each: latitude, longitude, and a factor of the prices."""

USERS = {"berlin": (52.52, 13.40, 6), "new-york": (40.71, -74.01, 3), "tokyo": (35.68, 139.69, 1)}
"""Sites of users: latitude, longitude, and their share of the jobs."""

PRICES = {"V100": 2_400_000, "A10": 1_200_000, "P100": 900_000, "T4": 450_000, "G2": 700_000, "G3": 3_200_000}
"""Prices of a GPU per hour, millionths, before the factor of the region."""

HALF, FULL = 0.5, 1.05
"""Loads at which the aims and the allocation are measured: requested GPU cores per core of the fleet."""

Maker = Callable[[], Profile | Policy]


def balanced(seed: int) -> Result:
    """Measure `balanced` and each single aim on the demo fleet, and on openb cut into 12 clusters in six regions."""
    trace = openb(ORDERS[0])
    nodes = [node for cluster in trace.fleet.clusters for node in cluster.nodes]
    worlds = {
        "demo": (demo_fleet(), demo_jobs(400, seed)),
        "openb in 12": (cut(nodes, seed), _jobs(trace.jobs, seed)),
    }
    rows = []
    for name, (fleet, jobs) in worlds.items():
        for policy, make in contestants(seed).items():
            rows.append({"fleet": name, "policy": policy, **measured(fleet, jobs, make)})
    notes = [
        f"placed and gpu_pct at {FULL:.0%} requested; the others at {HALF:.0%}, where there is a choice",
        "rtt_ms: mean round-trip time to users, measured on demo, from the great-circle distance on openb",
        "one_zone_pct: jobs of several replicas whose replicas are in one zone",
        "special_pct: GPUs on special hardware of jobs that do not request it",
        "price: mean price per GPU and hour of all placed GPUs",
        "only free is the policy bestfit; equal nodes are taken in the order of the fleet",
    ]
    return Result("balanced", rows, notes)


def contestants(seed: int) -> dict[str, Maker]:
    """Return the policies by name: `balanced` with equal weights and with others, and each aim alone."""
    weights: dict[str, dict[str, int]] = {"balanced": {}}
    weights |= {f"balanced, {aim} 4": {aim: 4} for aim in ("price", "free")}
    weights |= {f"only {aim}": {**dict.fromkeys(AIMS, 0), aim: 1} for aim in AIMS}

    def maker(given: dict[str, int]) -> Maker:
        return lambda: make_policy("balanced", PolicyOptions(seed=seed, weights=given))

    return {name: maker(given) for name, given in weights.items()}


def cut(nodes: Sequence[Node], seed: int) -> Fleet:
    """Return a fleet of 12 clusters in six regions, with the nodes in random order, prices and three sites of users."""
    random = Random(seed)  # not for secrets
    shuffled = random.sample(list(nodes), len(nodes))
    clusters = []
    for c in range(2 * len(SITES)):
        region, (latitude, longitude, factor) = list(SITES.items())[c // 2]
        facts = Facts(
            region,
            (f"{region}-{c % 2 + 1}",),
            location=Location(latitude, longitude),
            hardware=frozenset({"rdma"}) if c % 3 == 0 else frozenset(),
            prices={model: round(price * factor) for model, price in PRICES.items()},
        )
        clusters.append(Cluster(f"c{c:02}", tuple(shuffled[c :: 2 * len(SITES)]), f"gw-c{c:02}", facts))
    users = [Gateway(name, location=Location(*where[:2])) for name, where in USERS.items()]
    return Fleet(tuple(clusters), (*users, *(Gateway(each.gateway) for each in clusters)))


def _jobs(jobs: Sequence[Job], seed: int) -> list[Job]:
    """Return the jobs with sites of users; each twentieth with GPUs has four replicas, each tenth requests hardware."""
    random = Random(seed)  # not for secrets
    sites, shares = list(USERS), [share for *_, share in USERS.values()]
    found = []
    for number, job in enumerate(jobs):
        nodes = job.demand.nodes
        if number % 10 == 0:
            nodes = replace(nodes, hardware=frozenset({"rdma"}))
        demand = replace(job.demand, gateway=random.choices(sites, shares)[0], nodes=nodes)
        several = number % 20 == 5 and job.demand.request.gpus > 0
        found.append(replace(job, demand=demand, replicas=4 if several else 1))
    return found


def measured(fleet: Fleet, jobs: Sequence[Job], make: Maker) -> dict[str, Any]:
    """Return the figures of one policy at full and at half load."""
    full = _placed(fleet, arrivals_until_requested(fleet, jobs, FULL), make)[1]
    total = sum(device.core_milli for device in fleet.devices)
    used = sum(each.core_milli for placement in full for each in placement.slices)
    snapshot, half = _placed(fleet, arrivals_until_requested(fleet, jobs, HALF), make)
    return {
        "placed": len(full),
        "gpu_pct": round(100 * used / total, 1),
        **_figures(snapshot, half, {job.name: job for job in jobs}),
    }


def _placed(fleet: Fleet, jobs: Sequence[Job], make: Maker) -> tuple[Snapshot, list[Placement]]:
    snapshot = Snapshot(fleet)
    return snapshot, list(decide(snapshot, JobQueue(snapshot, jobs), make()).placements())


def _figures(snapshot: Snapshot, placements: Sequence[Placement], jobs: dict[str, Job]) -> dict[str, Any]:
    clusters = {each.name: each for each in snapshot.clusters}
    at = {each.name: c for c, each in enumerate(snapshot.clusters)}
    rtts = {name: distance_ns(snapshot, name) for name in {job.demand.gateway for job in jobs.values()} if name}
    rtt_ms, cost, gpus, special = [], 0.0, 0.0, 0.0
    zones: defaultdict[str, set[str]] = defaultdict(set)
    for each in placements:
        job, facts = jobs[each.job], clusters[each.cluster].facts
        if job.demand.gateway:
            rtt_ms.append(int(rtts[job.demand.gateway][at[each.cluster]]) / 10**6)
        if job.replicas > 1:
            zones[each.job].add(facts.zones[0])
        node = snapshot.nodes[snapshot.node_index[each.cluster, each.node]]
        share = sum(one.core_milli for one in each.slices) / WHOLE_DEVICE_MILLI
        price = facts.node_microprice(node) if share else 0
        assert price is not None, "all prices are known here"
        gpus, cost = gpus + share, cost + share * price / 10**6
        special += share if (facts.hardware or frozenset()) - job.demand.nodes.hardware else 0
    return {
        "rtt_ms": round(fmean(rtt_ms), 1),
        "one_zone_pct": round(100 * fmean(len(each) == 1 for each in zones.values()), 1),
        "special_pct": round(100 * special / gpus, 1),
        "price": round(cost / gpus, 3),
    }
