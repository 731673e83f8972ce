"""One workload in a simulated cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

from seaway.adapters.simulated.journal import Created, Ended, ReplicasLost, Resized
from seaway.adapters.simulated.ledger import Key
from seaway.application.ports.logs import NoContainerError
from seaway.domain.deployment import (
    Cause,
    Container,
    Deployment,
    Endpoint,
    Reach,
    ReplicaStatus,
    Workload,
    WorkloadPhase,
    deployment_name,
    service_name,
)
from seaway.domain.device import MILLI_PER_PERCENT_POINT
from seaway.domain.job_spec import ServiceType
from seaway.domain.placement import Placement
from seaway.domain.pod import program_place
from seaway.domain.reasons import Reason

NAMESPACE, CONTAINER = "default", "main"
"""Namespace of all pods, and name of their only container."""

LIVE = frozenset({WorkloadPhase.STARTING, WorkloadPhase.RUNNING})


@dataclass(slots=True, eq=False)
class Record:
    """State of a workload in its cluster.

    Attributes
    ----------
    made
        Journal entry of its creation, with its planned course.
    failed_replicas
        Replicas that failed. They stopped the others, except while the workload is live; empty if all ended in the same
        way.
    ended_ns
        Time of its end; None while it is live.
    cause
        Cause of its failure.
    late_ns
        Time at which replicas that were added while it ran start, by replica.
    """

    made: Created
    phase: WorkloadPhase = WorkloadPhase.STARTING
    reason: str = ""
    failed_replicas: tuple[int, ...] = ()
    ended_ns: int | None = None
    cause: Cause = Cause.WORKLOAD
    late_ns: dict[int, int] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """Job and attempt."""
        return self.made.job_id, self.made.attempt

    @property
    def due_ns(self) -> int | None:
        """Time of its next scheduled change of phase; None for none."""
        made = self.made
        if self.phase is WorkloadPhase.STARTING:
            return made.starts_ns
        if self.phase is WorkloadPhase.RUNNING:
            if made.vanishes_ns is None or made.ends_ns is None:
                return made.ends_ns if made.vanishes_ns is None else made.vanishes_ns
            return min(made.ends_ns, made.vanishes_ns)
        return None

    def resize(self, entry: Resized) -> None:
        """Set its replicas. Those of an elastic job share the rest of its work."""
        before, ends_ns = {each.replica for each in self.made.placements}, self.made.ends_ns
        new = {each.replica for each in entry.placements} - before
        self.late_ns |= dict.fromkeys(new, entry.ready_ns)
        if self.made.elastic and ends_ns is not None:
            begins_ns = max(entry.at_ns, self.made.starts_ns)
            ends_ns = begins_ns + (ends_ns - begins_ns) * len(before) // len(entry.placements)
        self.made = replace(self.made, placements=entry.placements, ends_ns=ends_ns)
        present = {each.replica for each in entry.placements}
        self.failed_replicas = tuple(each for each in self.failed_replicas if each in present)
        self.reason = self.reason if self.failed_replicas else ""

    def lose(self, entry: ReplicasLost) -> None:
        """Record the failure of some replicas, while the others continue."""
        self.failed_replicas = tuple(sorted({*self.failed_replicas, *entry.replicas}))
        self.reason, self.cause = entry.reason, Cause.INFRASTRUCTURE

    def end(self, entry: Ended) -> None:
        """Record its end, also of replicas that failed before."""
        self.phase = WorkloadPhase.SUCCEEDED if entry.succeeded else WorkloadPhase.FAILED
        self.reason, self.failed_replicas, self.cause = entry.reason, entry.replicas, entry.cause
        self.ended_ns = entry.at_ns

    def seen(self, cluster: str, now_ns: int) -> Workload:
        """Return the reported workload."""
        made = self.made
        containers = (Container(CONTAINER, made.ports),)
        replicas = tuple(
            ReplicaStatus(
                each.replica,
                self._phase(each.replica, now_ns),
                each.node,
                each.slices,
                self._why(each.replica),
                made.cpu_milli,
                made.memory_mib,
                self.pod(each.replica),
                (CONTAINER,) * len(each.slices),
                containers,
                self.cause,
            )
            for each in made.placements
        )
        at = _endpoints(made, cluster) if self.phase is WorkloadPhase.RUNNING else ()
        at += _rank_0(made, cluster) if made.rank_0 and self.phase in LIVE else ()
        phases = {each.phase for each in replicas}
        worst = WorkloadPhase.FAILED if WorkloadPhase.FAILED in phases else WorkloadPhase.STARTING
        phase = self.phase if phases == {self.phase} else worst
        return Workload(made.job_id, made.attempt, cluster, phase, replicas, self.reason, at, self.cause)

    def pod(self, replica: int) -> str:
        """Return the pod of a replica, ``namespace/pod``."""
        return f"{NAMESPACE}/{deployment_name(*self.key)}-{replica}"

    def _phase(self, replica: int, now_ns: int) -> WorkloadPhase:
        if self.phase in LIVE and replica in self.failed_replicas:
            return WorkloadPhase.FAILED
        late = self.phase is WorkloadPhase.RUNNING and self.late_ns.get(replica, 0) > now_ns
        return WorkloadPhase.STARTING if late else self.phase

    def _why(self, replica: int) -> str:
        if not self.failed_replicas or replica in self.failed_replicas:
            return self.reason
        if self.phase in LIVE:
            return ""
        return f"stopped, for replica {self.failed_replicas[0]} failed"


NODE_PORTS = range(30_000, 32_768)
"""Range of the ports of nodes, as in Kubernetes."""


RING_PORT = 29_500
"""Port of rank 0 of a ring."""


def _rank_0(made: Created, cluster: str) -> tuple[Endpoint, ...]:
    """Return the address at which other clusters reach rank 0 of a ring, which it has from its creation."""
    at_node = NODE_PORTS[crc32(f"{made.job_id} {made.attempt} {RING_PORT}".encode()) % len(NODE_PORTS)]
    return (Endpoint(f"{made.placements[0].node}.{cluster}.simulated:{at_node}", RING_PORT, Reach.CLUSTERS),)


def _endpoints(made: Created, cluster: str) -> tuple[Endpoint, ...]:
    """Return the addresses of the ports of a running workload. They are the same in each attempt."""
    kind, domain, service = (
        made.expose.type or ServiceType.CLUSTER_IP,
        f"{cluster}.simulated",
        made.service or made.job_id,
    )
    name = service_name(service)
    if kind is ServiceType.CLUSTER_IP:
        why = Reason("inside_only", type=kind.value)
        return tuple(Endpoint(f"{name}.{domain}:{port}", port, Reach.CLUSTER, why) for port in made.ports)
    if kind.by_host:
        found = tuple((f"http://{made.expose.host or f'{service}.{domain}'}", port) for port in made.ports[:1])
    elif kind is ServiceType.LOAD_BALANCER:
        found = tuple((f"lb-{service}.{domain}:{port}", port) for port in made.ports)
    else:
        node = made.placements[0].node
        fixed = dict(zip(made.ports, made.expose.node_ports, strict=False))
        any_of = {port: NODE_PORTS[crc32(f"{service} {port}".encode()) % len(NODE_PORTS)] for port in made.ports}
        found = tuple((f"{node}.{domain}:{at_node}", port) for port, at_node in (any_of | fixed).items())
    inside = tuple(Endpoint(f"{name}.{domain}:{port}", port, Reach.CLUSTER) for port in made.ports)
    return (*(Endpoint(address, port, Reach.OUTSIDE) for address, port in found), *inside)


def gone(key: Key, cluster: str) -> Workload:
    """Return the report of a removed workload."""
    return Workload(*key, cluster, WorkloadPhase.GONE)


NS_PER_S = 1_000_000_000
MAX_STEPS = 20
"""Number of progress lines of a replica between its start and its end."""

STEP_S = 30
"""Interval between two lines of a replica without an end, in seconds."""


def require_container(name: str) -> None:
    """Check that the replicas have the named container; raise `NoContainerError` if not."""
    if name not in {"", CONTAINER}:
        raise NoContainerError(name, [CONTAINER])


def manifests(deployment: Deployment) -> list[dict[str, Any]]:
    """Return a Kubernetes Job for each replica, pinned to its node and devices."""
    return [_job(deployment, placement) for placement in deployment.placements]


def lines(record: Record, replica: int, now_ns: int, since_ns: int = 0) -> Iterator[str]:
    """Yield the log lines of a replica from one second to now. Repeated calls give the same lines."""
    first = _line(since_ns, "")
    return (each for each in _lines(record, replica, now_ns) if each >= first)


def _lines(record: Record, replica: int, now_ns: int) -> Iterator[str]:
    made = record.made
    yield _line(made.at_ns, f"replica {replica} of {made.name!r} started (simulated)")
    if record.phase is WorkloadPhase.STARTING:
        return
    end_ns = now_ns if record.ended_ns is None else record.ended_ns
    if end_ns > made.starts_ns or record.phase is not WorkloadPhase.FAILED:
        yield _line(made.starts_ns, f"started{f' {made.image}' if made.image else ''}")
        yield from _progress(record, end_ns)
    if record.phase is WorkloadPhase.SUCCEEDED:
        yield _line(end_ns, "finished")
    elif record.phase is WorkloadPhase.FAILED:
        yield _line(end_ns, f"failed: {record.reason}")


def _progress(record: Record, end_ns: int) -> Iterator[str]:
    starts_ns, ends_ns = record.made.starts_ns, record.made.ends_ns
    if ends_ns is None:
        for step in range(1, (end_ns - starts_ns) // (STEP_S * NS_PER_S) + 1):
            yield _line(starts_ns + step * STEP_S * NS_PER_S, f"serving for {step * STEP_S} s")
        return
    for step in range(1, MAX_STEPS):
        at_ns = starts_ns + (ends_ns - starts_ns) * step // MAX_STEPS
        if at_ns >= end_ns:
            return
        yield _line(at_ns, f"progress {100 * step // MAX_STEPS} %")


def _line(at_ns: int, text: str) -> str:
    return f"{datetime.fromtimestamp(at_ns // NS_PER_S, UTC):%Y-%m-%dT%H:%M:%SZ} {text}"


def _job(deployment: Deployment, placement: Placement) -> dict[str, Any]:
    spec = deployment.spec
    labels = {
        **spec.labels,
        "seaway.io/job": deployment.job_id,
        "seaway.io/attempt": str(deployment.attempt),
        "seaway.io/tenant": spec.tenant,
    }
    pod: dict[str, Any] = {"metadata": {"labels": labels}, "spec": _pod(deployment, placement)}
    if placement.slices:
        uuids = ",".join(taken.uuid for taken in placement.slices)
        pod["metadata"]["annotations"] = {"nvidia.com/use-gpuuuid": uuids}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{deployment.name}-{placement.replica}", "labels": labels},
        "spec": {"backoffLimit": 0, "template": pod},
    }


def _pod(deployment: Deployment, placement: Placement) -> dict[str, Any]:
    run = deployment.spec.run
    container: dict[str, Any] = {
        "name": CONTAINER,
        "resources": {"limits": _limits(deployment, placement)},
    }
    if run.image:
        container["image"] = run.image
    if run.command:
        container["command"] = list(run.command)
    if run.args:
        container["args"] = list(run.args)
    if run.env:
        container["env"] = [{"name": name, "value": value} for name, value in run.env]
    if run.ports:
        container["ports"] = [{"containerPort": port} for port in run.ports]
    pod: dict[str, Any] = {"restartPolicy": "Never", "nodeName": placement.node, "containers": [container]}
    if run.pod:
        own = json.loads(run.pod)
        place = program_place(own)
        others = [each for at, each in enumerate(own["containers"]) if at != place]
        pod = {**own, **pod, "containers": [{**own["containers"][place], **container}, *others]}
    return pod


def _limits(deployment: Deployment, placement: Placement) -> dict[str, str]:
    """Return limits by the resource names of the vGPU device plugin.

    Memory is in MiB, cores are in percent of each device.
    """
    request = deployment.spec.demand.request
    limits = {"cpu": f"{request.cpu_milli}m", "memory": f"{request.memory_mib}Mi"}
    if placement.slices:
        limits["nvidia.com/gpu"] = str(len(placement.slices))
        limits["nvidia.com/gpumem"] = str(max(taken.memory_mib for taken in placement.slices))
        cores = max(taken.core_milli for taken in placement.slices)
        limits["nvidia.com/gpucores"] = str(-(-cores // MILLI_PER_PERCENT_POINT))
    return limits
