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
    """`Backends` over a fleet of simulated clusters.

    Parameters
    ----------
    fleet
        Clusters, gateways and links; the links stay as they are until `measure` says otherwise.
    clock
        The time in all clusters.
    options
        How they behave.
    data
        A folder for their journals; None keeps no state beyond the process.

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
        """Have links be as they are given from now on."""
        self._fleet = replace(self._fleet, links=tuple(links))

    def cluster(self, name: str) -> SimulatedCluster:
        """Return a cluster by name.

        Raises
        ------
        RejectedError
            When there is none of that name.
        """
        if name not in self._clusters:
            raise RejectedError(f"cluster {name!r} not found; available: {', '.join(self._clusters)}")
        return self._clusters[name]

    def stop_waiting(self) -> None:
        """Let waiting calls return; from now on none waits."""
        for each in self._clusters.values():
            each.stop_waiting()

    def close(self) -> None:
        """Let waiting calls return, and let go of the journals."""
        for each in self._clusters.values():
            each.close()
