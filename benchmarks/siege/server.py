"""``seaway up`` with simulated and real clusters in one fleet: ``python -m benchmarks.siege.server up ...``.

The settings of real clusters select them, as usual. The simulated ones of ``--fleet`` are there in addition.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Options
from seaway.application.clusters import ClusterNames
from seaway.application.ports.backend import Backend, Backends
from seaway.application.ports.clock import Clock
from seaway.application.ports.templates import Delivery
from seaway.bootstrap.clusters import Clusters, make_clusters, read_fleet
from seaway.bootstrap.settings import ClusterSettings
from seaway.cli.main import main
from seaway.cli.serving import server
from seaway.domain.network import Gateway, Link

MAX_CHANGES = 1024
"""Changes that a simulated cluster remembers. The default of 65,536 would fill memory that is not Seaway's."""


class MixedBackends:
    """`Backends` of several kinds."""

    def __init__(self, *kinds: Backends) -> None:
        self._kinds = kinds

    def clusters(self) -> Sequence[Backend]:
        """Return all clusters."""
        return [each for kind in self._kinds for each in kind.clusters()]

    def gateways(self) -> Sequence[Gateway]:
        """Return all gateways."""
        return [each for kind in self._kinds for each in kind.gateways()]

    def links(self) -> Sequence[Link]:
        """Return all links."""
        return [each for kind in self._kinds for each in kind.links()]


def make_mixed(
    settings: ClusterSettings, clock: Clock, data: Path, names: ClusterNames, stale_after_s: float, delivery: Delivery
) -> Clusters:
    """Create the simulated clusters of the fleet, and the real ones."""
    journals = data / "clusters"
    journals.mkdir(exist_ok=True)
    options = Options(start_delay_s=settings.start_delay_s, max_changes=MAX_CHANGES)
    simulated = SimulatedBackends(read_fleet(settings.fleet), clock, options, journals)
    real = make_clusters(settings, clock, data, names, stale_after_s, delivery)

    def close() -> None:
        simulated.close()
        real.close()

    return Clusters(real.kind, MixedBackends(simulated, real.backends), real.templates, close)


if __name__ == "__main__":
    vars(server)["make_clusters"] = make_mixed
    main()
