"""Which links a job's bounds refuse, in figures that a user can act on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice, permutations

from seaway.domain.bounds import misses, way
from seaway.domain.job import Job
from seaway.domain.network import Link, NetworkNeed
from seaway.scheduling.links import free_bandwidth
from seaway.scheduling.snapshot import Snapshot

MOST = 12
"""Links that are named of each kind."""


def refused_links(snapshot: Snapshot, job: Job) -> tuple[str, ...]:
    """Say which links break a job's bounds now, and by which figures.

    First those from its user to clusters that it may go to, where a cluster without a gateway has none; then those
    between such clusters, for a job of several replicas, either way. Bandwidth counts that can still be promised.

    Examples
    --------
    ``gw-4 to gw-1: latency 31 ms, bound 20 ms``
    """
    rules, user = job.demand.nodes, job.demand.gateway
    clusters = [each for each in snapshot.clusters if not rules.clusters or each.name in rules.clusters]
    doors = list(dict.fromkeys(each.gateway for each in clusters if each.gateway))
    told = list(islice(_broken(snapshot, job.demand.network, ((user, door) for door in doors if door != user)), MOST))
    if job.replicas > 1 and job.between_replicas.any:
        told += islice(_broken(snapshot, job.between_replicas, permutations(doors, 2), known_only=True), MOST)
    return tuple(told)


def _broken(
    snapshot: Snapshot, need: NetworkNeed, ends: Iterable[tuple[str, str]], *, known_only: bool = False
) -> Iterator[str]:
    """Say which of some links break bounds; `known_only` where the way back may stand for one that is not known."""
    if not need.any:
        return
    links = {(link.source, link.target): link for link in snapshot.links}
    at = {gateway.name: g for g, gateway in enumerate(snapshot.fleet.gateways)}
    for source, target in ends:
        link = links.get((source, target))
        if link is None and known_only and (target, source) in links:
            continue
        if link is not None:
            free_mbps = int(free_bandwidth(snapshot.arrays, at[source], at[target]))
            link = _with_free(link, free_mbps)
        if said := misses(need, link):
            yield way(source, target, said)


def _with_free(link: Link, free_mbps: int) -> Link:
    """Return a link of which so much is free, which may be below 0."""
    return replace(link, used_mbps=max(0, link.bandwidth_mbps - max(free_mbps, 0)))
