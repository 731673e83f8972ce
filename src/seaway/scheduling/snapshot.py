"""The fleet as the engine sees it: columns of what is there, what is free, and what jobs ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device, MigProfile
from seaway.domain.node import Node
from seaway.scheduling.demands import DemandTable
from seaway.scheduling.encode import encode_fleet
from seaway.scheduling.kernels.book import refresh_all, release_rows
from seaway.scheduling.state import FleetArrays, Int32, Int64


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
    placers
        What the engine keeps for each profile between decisions.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.clusters: list[Cluster] = list(fleet.clusters)
        self.nodes: list[Node] = [node for _, node in fleet.nodes]
        self.devices: list[Device] = list(fleet.devices)
        self.geometries: dict[tuple[MigProfile, ...], int] = {}
        self.arrays: FleetArrays = encode_fleet(fleet, self.geometries)
        self.demands = DemandTable(fleet)
        self.placers: dict[Any, Any] = {}
        refresh_all(self.arrays)

    def copy(self) -> Snapshot:
        """Return a snapshot of the same fleet in the same state, whose changes stay its own."""
        twin = object.__new__(Snapshot)
        twin.__dict__.update(self.__dict__)
        twin.placers = {}
        twin.arrays = FleetArrays(*(np.copy(table) for table in self.arrays))
        return twin

    def release(self, lines: Int64, slices: Int32, rows: NDArray[np.intp]) -> None:
        """Give back what some decisions of a plan hold: their pods ended, or were never made.

        Parameters
        ----------
        lines, slices
            The plan, as in `seaway.scheduling.plan.Plan`; its lines are marked unplaced.
        rows
            Which lines, shape (X,); lines that hold nothing are passed over.
        """
        release_rows(self.arrays, self.demands.arrays, lines, slices, rows)
