"""Every backend follows the rules of `seaway.testing.backends`."""

from __future__ import annotations

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.client import RemoteSimulatedBackends
from seaway.adapters.simulated.cluster import SimulatedCluster
from seaway.adapters.simulated.faults import Options
from seaway.adapters.simulated.messages import FaultRequest
from seaway.adapters.simulated.server import Server
from seaway.domain.cluster import Fleet
from seaway.domain.deployment import deployment_name
from seaway.testing.backends import BackendSuite, BackendUnderTest
from seaway.testing.clocks import VirtualClock
from seaway.testing.plugins import fleet, gpu, node

OPTIONS = Options(waits=False, max_changes=16)


def small() -> Fleet:
    """Create two nodes in one cluster, the first without devices."""
    return fleet(node(), node(gpu(), gpu()))


def outlive_the_log(cluster: SimulatedCluster) -> None:
    """Cause more events than the log of a cluster with `OPTIONS` stores."""
    for _ in range(20):
        cluster.fail_node("node-0")
        cluster.heal_node("node-0")


class TestSimulatedInProcess(BackendSuite):
    """The simulated clusters, on a clock that the test advances."""

    def make(self) -> BackendUnderTest:
        """Create a cluster."""
        clock = VirtualClock()
        backends = SimulatedBackends(small(), clock, OPTIONS)
        cluster = backends.clusters()[0]
        return BackendUnderTest(
            cluster,
            clock.advance_s,
            backends.close,
            cluster.disconnect,
            cluster.reconnect,
            cluster.fail_node,
            cluster.heal_node,
            cluster.vanish,
            lambda: outlive_the_log(cluster),
        )


class TestSimulatedOverHttp(BackendSuite):
    """The same clusters behind a server, with faults injected over HTTP as well."""

    def make(self) -> BackendUnderTest:
        """Serve a cluster on a free port."""
        clock = VirtualClock()
        served = SimulatedBackends(small(), clock, OPTIONS)
        server = Server(served)
        server.start()
        remote = RemoteSimulatedBackends(server.url)
        cluster = remote.clusters()[0]

        def close() -> None:
            remote.close()
            server.stop()

        return BackendUnderTest(
            cluster,
            clock.advance_s,
            close,
            lambda: cluster.cause(FaultRequest("hang")),
            lambda: cluster.heal("hang"),
            lambda node: cluster.cause(FaultRequest("node", node)),
            lambda node: cluster.heal("node", node),
            lambda job_id, attempt: cluster.cause(FaultRequest("vanish", deployment_name(job_id, attempt))),
            lambda: outlive_the_log(served.clusters()[0]),
        )
