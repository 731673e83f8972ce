"""Refusals: where a job is not sent again for a while, because clusters would not have it there."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from seaway.domain.job import Demand
from seaway.domain.placement import Placement
from seaway.scheduling.columns import NODE_CLUSTER, NODE_OPEN
from seaway.scheduling.snapshot.encode import allowed_node
from seaway.scheduling.snapshot.snapshot import Snapshot

Place = tuple[str, str]
"""A cluster, and a node of it; an empty name stands for all of the cluster."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """How often clusters refused a job, and where it is kept from for that.

    Attributes
    ----------
    devices
        By uuid.
    places
        Nodes, where it was to have no devices, and clusters that would have it on none of their nodes.
    """

    times: int = 0
    devices: frozenset[str] = frozenset()
    places: frozenset[Place] = frozenset()

    def kept(self, demand: Demand) -> Demand:
        """Return a demand that is kept from there."""
        if not self.devices and not self.places:
            return demand
        devices, nodes = demand.devices, demand.nodes
        return replace(
            demand,
            devices=replace(devices, avoid_uuids=devices.avoid_uuids | self.devices),
            nodes=replace(nodes, avoid=nodes.avoid | self.places),
        )

    def told(self) -> str:
        """Say from how much the job is kept; empty for nothing."""
        clusters = sum(not node for _, node in self.places)
        counts = (len(self.devices), "device"), (len(self.places) - clusters, "node"), (clusters, "cluster")
        said = " and ".join(f"{count} {each}{'s' * (count > 1)}" for count, each in counts if count)
        return f"is kept for a while from {said} where it was refused" if said else ""

    def forgiven(self) -> Refusals:
        """Return what is left when the job may try again where it was refused."""
        return Refusals(self.times)

    def once_more(
        self, demand: Demand, refused: Iterable[Placement], unfit: Collection[str], snapshot: Snapshot
    ) -> Refusals:
        """Return what follows from one more refusal.

        Parameters
        ----------
        demand
            What each replica asks for.
        refused
            Where clusters would not have the job.
        unfit
            Those of them that would have it on no node. What a node did not do is not held against it, and where the
            job could go nowhere else it is not kept from a cluster, or from a node, at all.
        snapshot
            The fleet.
        """
        refused = tuple(refused)
        devices = self.devices | {each.uuid for placement in refused for each in placement.slices}
        nodes = {(each.cluster, each.node) for each in refused if not each.slices and each.cluster not in unfit}
        places = self.places | nodes | {(cluster, "") for cluster in unfit}
        wide = Refusals(self.times + 1, devices, places)
        return wide if somewhere(wide.kept(demand), snapshot) else replace(wide, places=self.places)


NEVER_REFUSED = Refusals()


def somewhere(demand: Demand, snapshot: Snapshot) -> bool:
    """Tell whether there is an open node that a replica may go to, full or not."""
    columns, avoided = snapshot.arrays.nodes, demand.devices.avoid_uuids
    clusters, opened = columns[NODE_CLUSTER].tolist(), columns[NODE_OPEN].tolist()
    return any(
        opened[n]
        and allowed_node(demand.nodes, snapshot.clusters[clusters[n]], node)
        and (not demand.request.gpus or any(each.uuid not in avoided for each in node.devices))
        for n, node in enumerate(snapshot.nodes)
    )
