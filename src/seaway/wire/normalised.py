"""Jobs in the scheduler's form: integers in fixed units, with all defaults."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from pydantic import Field

from seaway.domain.job_record import JobRecord
from seaway.domain.network import NetworkNeed
from seaway.wire.facts import price_or_none
from seaway.wire.job_out import RequestOut, request_fields
from seaway.wire.message import Shown, fields_of


class NeedOut(Shown):
    """Bounds on a link; 0 means no bound."""

    max_latency_ns: int
    max_jitter_ns: int
    max_loss_ppm: int
    min_bandwidth_mbps: int


class DeviceRulesOut(Shown):
    """Allowed devices; an empty list allows any."""

    models: list[str]
    vendors: list[str]
    use_types: list[str]
    avoid_types: list[str]
    use_uuids: list[str]
    avoid_uuids: list[str]
    modes: list[str]
    same_numa: bool
    exclusive: bool
    topology: str = ""
    """Connection between the devices: same-island or best-effort; empty for any."""


class TolerationOut(Shown):
    """A tolerated taint."""

    key: str
    value: str | None
    effect: str | None


class NodeRulesOut(Shown):
    """Allowed nodes and clusters; an empty list allows any."""

    node_labels: dict[str, str]
    tolerations: list[TolerationOut]
    clusters: list[str]
    """Allowed clusters, including the constraints of the queue's pool.

    The single name "" means that no cluster is allowed.
    """
    regions: list[str]
    hardware: list[str]
    cluster_labels: dict[str, str] = Field(default_factory=dict)
    max_price_per_gpu_hour: str | None = None


class NormalisedJob(Shown):
    """A job in the scheduler's form."""

    id: str
    replicas: int
    gang: bool
    ring: bool = False
    """True if the replicas form a ring over clusters."""
    priority: int
    tenant: str
    queue: str
    expected_duration_s: int | None
    request: RequestOut
    devices: DeviceRulesOut
    nodes: NodeRulesOut
    gateway: str
    network: NeedOut
    between_replicas: NeedOut
    labels: dict[str, str]

    @classmethod
    def of(cls, job: JobRecord, clusters: AbstractSet[str] = frozenset()) -> NormalisedJob:
        """Return the view of a job whose queue's pool has `clusters`."""
        return cls.model_validate(normalised_fields(job, clusters))


def normalised_fields(record: JobRecord, clusters: AbstractSet[str] = frozenset()) -> dict[str, Any]:
    """Return the fields of `NormalisedJob` for a job."""
    job = record.spec.job(record.id, frozenset(clusters))
    devices, nodes = job.demand.devices, job.demand.nodes
    return {
        "id": job.name,
        "replicas": job.replicas,
        "gang": job.gang,
        "ring": job.ring,
        "priority": job.priority,
        "tenant": job.tenant,
        "queue": job.queue,
        "expected_duration_s": job.expected_duration_s,
        "request": request_fields(job.demand.request),
        "devices": {
            "models": sorted(devices.models),
            "vendors": sorted(devices.vendors),
            "use_types": list(devices.use_types),
            "avoid_types": list(devices.avoid_types),
            "use_uuids": sorted(devices.use_uuids),
            "avoid_uuids": sorted(devices.avoid_uuids),
            "modes": sorted(mode.value for mode in devices.modes),
            "same_numa": devices.same_numa,
            "exclusive": devices.exclusive,
            "topology": devices.topology.value,
        },
        "nodes": {
            "node_labels": dict(nodes.node_labels),
            "tolerations": [
                {"key": each.key, "value": each.value, "effect": each.effect.value if each.effect else None}
                for each in nodes.tolerations
            ],
            "clusters": sorted(nodes.clusters),
            "regions": sorted(nodes.regions),
            "hardware": sorted(nodes.hardware),
            "cluster_labels": dict(nodes.cluster_labels),
            "max_price_per_gpu_hour": price_or_none(nodes.max_microprice),
        },
        "gateway": job.demand.gateway,
        "network": need_fields(job.demand.network),
        "between_replicas": need_fields(job.between_replicas),
        "labels": dict(job.labels),
    }


def need_fields(need: NetworkNeed) -> dict[str, int]:
    """Return the fields of `NeedOut` for bounds."""
    return fields_of(NeedOut, need)
