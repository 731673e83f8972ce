"""A complete environment: Karmada's control plane and its members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.fakes.kubernetes.app import Application
from tests.fakes.kubernetes.exchange import Answer, Request
from tests.fakes.kubernetes.failures import FailureError, not_found
from tests.fakes.kubernetes.hall import HALL, with_template_traits
from tests.fakes.kubernetes.karmada.bindings import Bindings
from tests.fakes.kubernetes.karmada.clusters import Clusters
from tests.fakes.kubernetes.karmada.detector import Detector
from tests.fakes.kubernetes.karmada.execution import Execution
from tests.fakes.kubernetes.karmada.members import KarmadaPace, Member
from tests.fakes.kubernetes.karmada.namespaces import NamespaceSync
from tests.fakes.kubernetes.karmada.scheduling import ClusterScheduler
from tests.fakes.kubernetes.karmada.words import CLUSTER_FINALIZER, SPACE
from tests.fakes.kubernetes.kinds import CLUSTERS, KARMADA, KUBERNETES, NAMESPACES, NODES, OPERATORS, PODS
from tests.fakes.kubernetes.kubeconfig import write_kubeconfig
from tests.fakes.kubernetes.server import ApiServer

PROXY = ["apis", "cluster.karmada.io", "v1alpha1", "clusters"]
"""Prefix of the path of a cluster's proxy."""


def control_server(name: str = "karmada", **settings: Any) -> ApiServer:  # noqa: ANN401, those of ApiServer
    """Return a server for a control plane: without nodes, pods and controllers of workloads."""
    kinds = [kind for kind in (*KUBERNETES, *OPERATORS, *KARMADA) if kind not in (NODES, PODS)]
    return ApiServer(name, **{"kinds": kinds, "controllers": ("garbage", "namespaces"), **settings})


class KarmadaWorld:
    """Karmada's control plane and its members, joined in push mode.

    Parameters
    ----------
    members
        Their names, or existing servers (which `open` also opens).
    control
        The control plane's server, if it differs from that of `control_server`, for example with TLS.
    pace
        Reaction times of Karmada.

    Attributes
    ----------
    control
        The control plane's server.
    members
        Servers by name.

    Examples
    --------
    >>> with KarmadaWorld(["member1", "member2"]) as world:
    ...     sorted(one["metadata"]["name"] for one in world.control.list(CLUSTERS))
    ['member1', 'member2']
    """

    def __init__(
        self,
        members: Sequence[str | ApiServer] = ("member1", "member2"),
        control: ApiServer | None = None,
        pace: KarmadaPace | None = None,
    ) -> None:
        self.control = control or control_server()
        servers = [ApiServer(one, seed=index + 1) if isinstance(one, str) else one for index, one in enumerate(members)]
        self.members: dict[str, ApiServer] = {one.name: one for one in servers}
        self._joined: dict[str, Member] = {}
        self._pace = pace or KarmadaPace()
        staff = self.control.staff
        self._clusters = Clusters(staff, self._pace)
        self._execution = Execution(staff, self._joined, self._pace)
        namespaces = NamespaceSync(staff, self._joined)
        self._clusters.on_return += [namespaces.retry, self._execution.retry]
        own = (Detector(staff), Bindings(staff), ClusterScheduler(staff))
        for controller in (*own, namespaces, self._execution, self._clusters):
            staff.hire(controller)
        self.control.app.before.append(self._proxy)
        self.control.app.members.append(self._behind)

    def open(self) -> Self:
        """Start all servers and join the members."""
        self.control.open()
        for server in self.members.values():
            server.open()
            self.join(server)
        self.settle()
        return self

    def close(self) -> None:
        """Stop all servers."""
        for server in (self.control, *self.members.values()):
            server.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def join(self, server: ApiServer) -> None:
        """Join a member, as ``karmadactl join`` does."""
        HALL.call(lambda: self._join(server))

    def hold(self, name: str) -> None:
        """Stop Karmada's writes into a member, which stays available and ready, until `release`."""
        HALL.call(lambda: self._execution.held.add(name))

    def release(self, name: str) -> None:
        """Resume Karmada's writes into a member."""
        HALL.call(lambda: self._execution.held.discard(name))
        HALL.call(lambda: self._execution.retry(name))

    def settle(self) -> None:
        """Wait until no server has immediate work left."""
        staffs = [one.staff for one in (self.control, *self.members.values())]
        HALL.run(with_template_traits(lambda: all(staff.idle for staff in staffs)))

    def kubeconfig(self, path: Path, *, members: bool = False) -> Path:
        """Write a kubeconfig of the control plane, the current context, and optionally of the members."""
        servers = [self.control, *(self.members.values() if members else ())]
        return write_kubeconfig(path, [one.entry() for one in servers])

    @property
    def servers(self) -> Mapping[str, ApiServer]:
        """All servers by name."""
        return {self.control.name: self.control, **self.members}

    def _join(self, server: ApiServer) -> None:
        verbs, store = self.control.verbs, self.control.store
        for name in ("karmada-system", "karmada-cluster", f"{SPACE}{server.name}"):
            if store.find(NAMESPACES, "", name) is None:
                verbs.create(NAMESPACES, "", {"metadata": {"name": name}})
        meta = {"name": server.name, "finalizers": [CLUSTER_FINALIZER]}
        reference = {"name": server.name, "namespace": "karmada-cluster"}
        spec = {"syncMode": "Push", "id": f"id-{server.name}", "apiEndpoint": server.url, "secretRef": reference}
        if store.find(CLUSTERS, "", server.name) is None:
            verbs.create(CLUSTERS, "", {"metadata": meta, "spec": spec})
        member = Member(server.name, server)
        self._joined[server.name] = member
        self._execution.follow(member)
        self._clusters.follow(member)

    def _behind(self, path: str) -> tuple[Application, str] | None:
        """Return the member behind a path of a cluster's proxy, and the path there; None for other paths."""
        parts = path.strip("/").split("/", 6)
        if parts[:4] != PROXY or len(parts) < 6 or parts[5] != "proxy":
            return None
        name = parts[4]
        member = self._joined.get(name)
        if member is None or self.control.store.find(CLUSTERS, "", name) is None:
            raise not_found(CLUSTERS, name)
        if not member.server.running:
            port = member.server.url.rpartition("//")[2]
            raise FailureError(500, "", f"dial tcp {port}: connect: connection refused")
        return member.server.app, f"/{parts[6] if len(parts) > 6 else ''}"

    async def _proxy(self, request: Request) -> Answer | None:
        """Forward a request for a cluster's proxy to the member, and stream its answer."""
        found = self._behind(request.path)
        if found is None:
            return None
        app, path = found
        answer = await app.respond(
            Request(request.method, path, request.query, request.headers, request.body, request.gone)
        )
        if answer.watcher is not None:
            answer.watcher.paths.append(request.path)
            self.control.proxied.add(answer.watcher)
        return answer
