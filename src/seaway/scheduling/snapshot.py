"""The fleet as the engine sees it: columns of what is there, what is free, and what jobs ask for."""

from __future__ import annotations

import numpy as np

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device, MigProfile
from seaway.domain.node import Node
from seaway.scheduling.demands import DemandTable
from seaway.scheduling.encode import encode_fleet
from seaway.scheduling.kernels.book import refresh_all
from seaway.scheduling.state import FleetArrays


class Snapshot:
    """A fleet with all that is placed on it.

    Parameters
    ----------
    fleet
        Clusters, nodes, devices, gateways and links; nothing is placed on it yet.

    Attributes
    ----------
    clusters, nodes, devices
        What the indices in the columns stand for.
    arrays
        What is there and what is free, see `seaway.scheduling.state.FleetArrays`.
    demands
        What was asked for so far.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.clusters: list[Cluster] = list(fleet.clusters)
        self.nodes: list[Node] = [node for _, node in fleet.nodes]
        self.devices: list[Device] = list(fleet.devices)
        self.geometries: dict[tuple[MigProfile, ...], int] = {}
        self.arrays: FleetArrays = encode_fleet(fleet, self.geometries)
        self.demands = DemandTable(fleet)
        refresh_all(self.arrays)

    def copy(self) -> Snapshot:
        """Return a snapshot of the same fleet in the same state, whose changes stay its own."""
        twin = object.__new__(Snapshot)
        twin.__dict__.update(self.__dict__)
        twin.arrays = FleetArrays(*(np.copy(table) for table in self.arrays))
        return twin
