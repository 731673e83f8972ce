"""Rejections of jobs by clusters, the places that jobs avoid because of them, and deadlines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from heapq import heappop, heappush

from seaway.application.ports.clock import Clock
from seaway.domain.job import Demand
from seaway.domain.placement import Placement
from seaway.domain.reasons import Reason, both
from seaway.scheduling.columns import NODE_CLUSTER, NODE_OPEN
from seaway.scheduling.snapshot.encode import allowed_node
from seaway.scheduling.snapshot.snapshot import Snapshot

Place = tuple[str, str]
"""Cluster and node; an empty node name means the whole cluster."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """Rejections of a job by clusters, and the places that it avoids because of them.

    Attributes
    ----------
    devices
        UUIDs of avoided devices.
    places
        Avoided nodes of a job without devices, and clusters without a suitable node.
    only
        Nodes to which an operator moves the job; empty for any.
    """

    times: int = 0
    devices: frozenset[str] = frozenset()
    places: frozenset[Place] = frozenset()
    only: frozenset[Place] = frozenset()

    def retained(self, demand: Demand) -> Demand:
        """Return the demand with the avoided places excluded."""
        if not self.devices and not self.places and not self.only:
            return demand
        devices, nodes = demand.devices, demand.nodes
        return replace(
            demand,
            devices=replace(devices, avoid_uuids=devices.avoid_uuids | self.devices),
            nodes=replace(nodes, avoid=nodes.avoid | self.places, only=self.only or nodes.only),
        )

    def reported(self) -> str:
        """Return a reason with the number of avoided places; empty for none."""
        clusters = sum(not node for _, node in self.places)
        counts = {"device": len(self.devices), "node": len(self.places) - clusters, "cluster": clusters}
        said = [Reason(f"count_of_{kind}s", count=count) for kind, count in counts.items() if count]
        return Reason("avoids", places=both(*said)) if said else ""

    def without_exclusions(self) -> Refusals:
        """Return the state after the exclusion period: the count stays, the places are dropped."""
        return Refusals(self.times)

    def with_rejection(
        self, demand: Demand, refused: Iterable[Placement], unfit: Collection[str], snapshot: Snapshot
    ) -> Refusals:
        """Return the state after one more rejection.

        Parameters
        ----------
        demand
            Request of each replica.
        refused
            Placements that clusters rejected.
        unfit
            Clusters among them without a suitable node; their nodes are not excluded. If no other node could ever run
            the job, this rejection excludes neither clusters nor nodes.
        snapshot
            The fleet.
        """
        refused = tuple(refused)
        devices = self.devices | {each.uuid for placement in refused for each in placement.slices}
        nodes = {(each.cluster, each.node) for each in refused if not each.slices and each.cluster not in unfit}
        places = self.places | nodes | {(cluster, "") for cluster in unfit}
        wide = Refusals(self.times + 1, devices, places)
        return wide if any_node_fits(wide.retained(demand), snapshot) else replace(wide, places=self.places)


NEVER_REFUSED = Refusals()


def any_node_fits(demand: Demand, snapshot: Snapshot) -> bool:
    """Report whether any open node, even a full one, may run a replica."""
    columns, avoided = snapshot.arrays.nodes, demand.devices.avoid_uuids
    clusters, opened = columns[NODE_CLUSTER].tolist(), columns[NODE_OPEN].tolist()
    return any(
        opened[n]
        and allowed_node(demand.nodes, snapshot.clusters[clusters[n]], node)
        and (not demand.request.gpus or any(each.uuid not in avoided for each in node.devices))
        for n, node in enumerate(snapshot.nodes)
    )


class Due(Enum):
    """Kinds of deadlines."""

    EXPIRY = "expiry"
    """Expiry of an unconfirmed placement."""
    LIMIT = "limit"
    """Time limit of a job."""
    LEASE = "lease"
    """End of the lease of a job, or the warning before."""
    RETRY = "retry"
    """End of the back-off of a job."""
    COLLECT = "collect"
    """Removal of the objects of an ended attempt."""
    FORGIVE = "forgive"
    """End of the exclusion period of a job."""
    WHOLE = "whole"
    """Check of a workload that lacks some of its replicas."""


Key = tuple[str, int, str]
"""Job ID, attempt number, and a cluster if relevant."""


class Deadlines:
    """Deadlines in the order of time.

    A deadline that no longer matters stays. The receiver checks whether it still applies.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, Due, Key]] = []
        self._count = 0

    def in_seconds(self, seconds: float, what: Due, key: Key) -> None:
        """Set a deadline after this many seconds."""
        self._count += 1  # equal deadlines keep their insertion order
        heappush(self._heap, (self._clock.monotonic_ns() + int(seconds * 1e9), self._count, what, key))

    def at_wall(self, wall_ns: int, most_s: float, what: Due, key: Key) -> None:
        """Set a deadline at a wall-clock time, at most `most_s` seconds ahead."""
        left_s = (wall_ns - self._clock.now_ns()) / 1e9
        self.in_seconds(min(max(left_s, 0), most_s), what, key)

    def due(self) -> Iterator[tuple[Due, Key]]:
        """Remove and yield the deadlines that are due."""
        now_ns = self._clock.monotonic_ns()
        while self._heap and self._heap[0][0] <= now_ns:
            _, _, what, key = heappop(self._heap)
            yield what, key

    def next_ns(self) -> int | None:
        """Return the monotonic time of the next deadline; None if there is none."""
        return self._heap[0][0] if self._heap else None
