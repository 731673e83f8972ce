"""All clusters of a fleet, simulated in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from seaway.adapters.simulated.cluster import SimulatedCluster
from seaway.adapters.simulated.faults import Options
from seaway.adapters.simulated.journal import journal_path
from seaway.application.ports.clock import Clock
from seaway.domain.cluster import Fleet
from seaway.domain.errors import RejectedError, SeawayError
from seaway.domain.network import Gateway, Link


class SimulatedBackends:
    """`Backends` for a fleet of simulated clusters.

    Parameters
    ----------
    fleet
        Clusters, gateways and links; `measure` replaces the links.
    clock
        Clock of all clusters.
    options
        Options of the clusters.
    data
        Folder for journals; None to keep state only in the process.

    Raises
    ------
    RejectedError
        When a journal cannot be read, or belongs to another fleet.
    """

    def __init__(self, fleet: Fleet, clock: Clock, options: Options | None = None, data: Path | None = None) -> None:
        self._fleet = fleet
        self._clusters: dict[str, SimulatedCluster] = {}
        try:
            for each in fleet.clusters:
                journal = journal_path(data, each.name) if data else None
                self._clusters[each.name] = SimulatedCluster(each, clock, options, journal)
        except SeawayError:
            self.close()
            raise

    def clusters(self) -> Sequence[SimulatedCluster]:
        """Return the clusters, in the order that decides ties."""
        return tuple(self._clusters.values())

    def gateways(self) -> Sequence[Gateway]:
        """Return the gateways."""
        return self._fleet.gateways

    def links(self) -> Sequence[Link]:
        """Return the links of the fleet."""
        return self._fleet.links

    def measure(self, links: Sequence[Link]) -> None:
        """Replace the links."""
        self._fleet = replace(self._fleet, links=tuple(links))

    def cluster(self, name: str) -> SimulatedCluster:
        """Return a cluster by name.

        Raises
        ------
        RejectedError
            When there is no such cluster.
        """
        if name not in self._clusters:
            raise RejectedError(f"cluster {name!r} not found; available: {', '.join(self._clusters)}")
        return self._clusters[name]

    def stop_waiting(self) -> None:
        """End all waiting calls, and prevent further waits."""
        for each in self._clusters.values():
            each.stop_waiting()

    def close(self) -> None:
        """End all waiting calls, and close the journals."""
        for each in self._clusters.values():
            each.close()
