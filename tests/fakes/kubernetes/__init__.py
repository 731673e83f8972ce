"""A Kubernetes and Karmada API server in memory, for tests and benchmarks, behind real HTTP on loopback.

One server with controllers, a scheduler (with HAMi's rules) and kubelets:

    with ApiServer() as server:
        server.create({"apiVersion": "v1", "kind": "Node", ...})
        httpx.get(f"{server.url}/api/v1/nodes", headers=server.headers)
        server.settle()                                  # whatever can happen at once has happened

A control plane and its members; each member is an `ApiServer` too:

    with KarmadaWorld(["member1", "member2"]) as world:
        world.control.create({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", ...})
        world.members["member1"].fail_node("n1")
        world.settle()

`server.faults` injects faults, as do `stop`, `start`, `forget_history` and `stale_reads`:

    with server.faults.during(server.faults.hang("*/pods*")):
        ...                                              # open watches of pods are silent, too

All servers of a process share one thread with one event loop, so nothing in them needs a lock; methods of `ApiServer`
may be called from any other thread. Nothing polls, and only timers wait: `settle` is exact, and `wait_for` checks its
condition after every change. Rely only on those rules of Kubernetes and Karmada that
``tests/conformance/test_server_*.py`` also runs against real servers.

The annotation ``testbed/run-seconds`` and images ``missing/...``, ``fail/...`` and ``oom/...`` decide how pods end.
`seeding` fills servers with thousands of objects, and ``python -m tests.fakes.kubernetes`` serves from a process of its
own.

Go clients, kubectl among them, send no token without TLS: give them ``ApiServer(tls="certificate")``.
"""

from tests.fakes.kubernetes.controllers.kubelet import Pace
from tests.fakes.kubernetes.faults import Fault
from tests.fakes.kubernetes.karmada.members import KarmadaPace
from tests.fakes.kubernetes.karmada.world import KarmadaWorld, control_server
from tests.fakes.kubernetes.server import ApiServer

__all__ = ["ApiServer", "Fault", "KarmadaPace", "KarmadaWorld", "Pace", "control_server"]
