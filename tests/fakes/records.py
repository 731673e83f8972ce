"""Builders of records: small and valid, with the fields that a test gives."""

# ruff: noqa: ANN401  # fields go straight into the values, which check them

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from seaway.application.records import (
    AgentRecord,
    AuditEntry,
    ClusterFacts,
    ClusterName,
    ClusterSample,
    Cordon,
    EvaluationRecord,
    Event,
    IdempotencyKey,
    LinkSample,
    NetworkRecord,
    PathRecord,
    PendingCommand,
    PolicyRecord,
    Role,
    ShadowResult,
    Token,
    Verb,
)
from seaway.domain.arrays import TaskArray
from seaway.domain.attempt import Attempt
from seaway.domain.cluster import Cluster
from seaway.domain.dependencies import After, When
from seaway.domain.device import Device, DeviceMode, MigProfile
from seaway.domain.facts import Facts, Location
from seaway.domain.job import DataSource, Demand, DeviceRules, NodeRules, ResourceRequest
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobIds, JobSpec
from seaway.domain.job_state import AttemptState, JobState
from seaway.domain.network import NetworkNeed
from seaway.domain.node import Node, Taint, TaintEffect, Toleration
from seaway.domain.notifications import Notify, Occasion
from seaway.domain.placement import DeviceSlice, Placement
from seaway.domain.reasons import Reason
from seaway.domain.runtime import Run
from seaway.domain.tenancy import DEFAULT

NOW_NS = 1_800_000_000_000_000_000
"""Time of all records."""

IDS = JobIds(Random(7))


def draw_id() -> str:
    """Return a new id of a job."""
    return IDS.generate(NOW_NS)


def spec(name: str = "train", **fields: Any) -> JobSpec:
    """Create a spec that requests one core."""
    return JobSpec(name, **{"demand": Demand(ResourceRequest(cpu_milli=1000)), **fields})


NOTIFY = (Notify("ops", (Occasion.STARTED,)), Notify("ada@example.com"))
"""Receivers of messages."""


def full_spec() -> JobSpec:
    """Create a spec in which every field differs from its default."""
    request = ResourceRequest(4000, 8192, 2, 10_000, 0, 500)
    devices = DeviceRules(
        frozenset({"A100", "H100"}),
        ("A",),
        ("V",),
        frozenset({"GPU-1"}),
        frozenset({"GPU-2"}),
        frozenset({"nvidia"}),
        frozenset({next(iter(DeviceMode))}),
        same_numa=True,
        exclusive=True,
    )
    nodes = NodeRules((("zone", "a"),), (Toleration(),), frozenset({"c1"}), frozenset({"eu"}), frozenset({"rdma"}))
    need = NetworkNeed(10, 20, 30, 40)
    demand = Demand(request, devices, nodes, "site", need)
    run = Run("image:1", ("python",), ("-c", 'print("é𝄞\\n\u0000")'), (("A", "1"), ("B", "")), (80, 443))
    labels = {"team": "ml", "Σ": "'\"\\"}
    data = DataSource("c1", 5, (DataSource("c2", 6),))
    full = JobSpec("full", demand, 3, True, need, -5, "team-a", "fast", "ray", run, 60, 3600, 2, labels, True, True)
    array = TaskArray("0-5", 2, (("A", ("x", "y")), ("B", ("1", "2", "3"))))
    return replace(full, data=data, output_mib=7, after=(After(draw_id(), When.STARTED),), array=array, notify=NOTIFY)


def job_record(**fields: Any) -> JobRecord:
    """Create a job that was just submitted."""
    given = {
        "id": "",
        "spec": spec(),
        "state": JobState.PENDING,
        "submitted_ns": NOW_NS,
        "changed_ns": NOW_NS,
        "submitted_by": "ada",
    }
    record = {**given, **fields}
    record["id"] = record["id"] or draw_id()
    return JobRecord(**record)


def attempt_of(job: JobRecord, number: int = 1, **fields: Any) -> Attempt:
    """Create an attempt of a job: one replica on one device."""
    placement = Placement(job.id, 0, "c1", "n1", (DeviceSlice("GPU-1", 8000, 100), DeviceSlice("M", 1, 2, "1g.5gb", 3)))
    given = {
        "state": AttemptState.ASSUMED,
        "spec": job.spec,
        "policy": "bestfit",
        "placements": (placement,),
        "created_ns": NOW_NS,
        "expires_ns": NOW_NS + 1,
    }
    return Attempt(job.id, number, **{**given, **fields})


def pending_command_of(job: JobRecord, attempt: int = 1, **fields: Any) -> PendingCommand:
    """Create a pending command for a job."""
    given = {"cluster": "c1", "verb": Verb.CREATE, "created_ns": NOW_NS}
    return PendingCommand(job.id, attempt, **{**given, **fields})


def event_of(job: JobRecord | None = None, **fields: Any) -> Event:
    """Create an event of a job, or of the fleet."""
    given: dict[str, Any] = {"at_ns": NOW_NS, "kind": "state", "reason": "because", "actor": "ada"}
    if job is not None:
        given |= {"tenant": job.spec.tenant, "job_id": job.id, "state": job.state.value}
    return Event(**{**given, **fields})


def key_of(job: JobRecord, key: str = "k", **fields: Any) -> IdempotencyKey:
    """Create an idempotency key that a job was submitted with."""
    return IdempotencyKey(
        **{"tenant": DEFAULT, "key": key, "digest": "d", "job_id": job.id, "created_ns": NOW_NS, **fields}
    )


def token(**fields: Any) -> Token:
    """Create a token."""
    given = {"id": "t1", "name": "ci", "digest": "0" * 64, "role": Role.USER, "tenant": DEFAULT}
    return Token(**{**given, "created_ns": NOW_NS, "created_by": "ada", **fields})


def audit_entry(**fields: Any) -> AuditEntry:
    """Create an entry of the audit log."""
    given = {"actor": "ada", "role": "admin", "tenant": "", "verb": "POST submit", "target": "/jobs", "status": 201}
    return AuditEntry(**{"at_ns": NOW_NS, **given, **fields})


def cordon(**fields: Any) -> Cordon:
    """Create a cordon of a whole cluster."""
    given = {"cluster": "c1", "node": "", "drain": True, "reason": "repair", "actor": "ada", "at_ns": NOW_NS}
    return Cordon(**{**given, **fields})


def cluster_facts(**fields: Any) -> ClusterFacts:
    """Create facts of a cluster, each known."""
    facts = Facts(
        "eu", ("eu-1", "eu-2"), "aws", Location(52.52, -13.4), frozenset({"rdma"}), {"A100": 2}, {"*": 1}, {"a": "b"}
    )
    return ClusterFacts(**{"cluster": "c1", "facts": facts, "actor": "ada", "at_ns": NOW_NS, **fields})


def full_cluster() -> Cluster:
    """Create a cluster with a node and a device without default values."""
    facts = cluster_facts().facts
    profile = MigProfile("3g.20gb", 20_000, 430, 3, 4, (0, 4))
    device = Device(
        "u1", 1, "NVIDIA A100", 40_960, "AMD", 900, 7, 1, island=2, pcie_switch=3, healthy=False, cordoned=True,
        mode=DeviceMode.MIG, mig_profiles=(profile,), mig_single_device=True, core_steps=7, memory_step_mib=8,
        even_shares=True, reason=Reason("of_cluster", what="it fell off the bus"), tpu_slice="s", slice_nodes=2,
    )  # fmt: skip
    taint = Taint("gpu", "yes", TaintEffect.NO_EXECUTE)
    node = Node("n1", 64_000, 1 << 20, (device,), {"zone": "eu-1a"}, (taint,), ready=False, pods=110, reason="broken")
    return Cluster("c1", (node,), "gw-1", facts, replace(facts, region=""))


def cluster_name(**fields: Any) -> ClusterName:
    """Create the name of a cluster."""
    return ClusterName(**{"name": "c1", "uid": "u1", "server": "s1", **fields})


def cluster_sample(**fields: Any) -> ClusterSample:
    """Create a sample of a cluster."""
    names: tuple[str, ...] = ("nodes", "gpus", "gpu_milli", "gpu_milli_used", "gpu_memory_mib", "gpu_memory_mib_used")
    names += ("cpu_milli", "cpu_milli_used", "memory_mib", "memory_mib_used", "jobs")
    figures = {name: at for at, name in enumerate(names, 1)}
    return ClusterSample(**{"at_ns": NOW_NS, "cluster": "c1", "state": "up", **figures, **fields})


def link_sample(**fields: Any) -> LinkSample:
    """Create a sample of a link."""
    figures = {"latency_ns": 1, "jitter_ns": 2, "loss_ppm": 3, "bandwidth_mbps": 4, "used_mbps": 5}
    return LinkSample(**{"at_ns": NOW_NS, "source": "a", "target": "b", **figures, **fields})


def network_record(**fields: Any) -> NetworkRecord:
    """Create a network record."""
    return NetworkRecord(**{"text": '{"gateways": []}', "version": 3, "actor": "ada", "at_ns": NOW_NS, **fields})


def agent_record(**fields: Any) -> AgentRecord:
    """Create a record of an agent."""
    figures = {"started_ns": NOW_NS - 9, "number": 8, "at_ns": NOW_NS, "address": "::1"}
    figures |= {"reports": 7, "rounds": 6, "dropped": 5, "discarded": 4}
    return AgentRecord(**{"gateway": "gw-1", **figures, **fields})


def path_record(**fields: Any) -> PathRecord:
    """Create a record of a path."""
    given = {"active": "via-2", "active_ns": NOW_NS - 1, "applied": "direct", "applied_ns": NOW_NS, "why": "near"}
    return PathRecord(**{"source": "gw-1", "target": "gw-2", **given, **fields})


def policy_record(**fields: Any) -> PolicyRecord:
    """Create a trained policy with an invalid file."""
    given = {"name": "tiny", "digest": "0f" * 32, "content": b"\x00PK\xff", "actor": "ada", "at_ns": NOW_NS}
    return PolicyRecord(**{**given, **fields})


def evaluation_record(**fields: Any) -> EvaluationRecord:
    """Create an evaluation with a nearly empty row."""
    rows = '[{"policy":"fgd","level":"node","instance":"seed0","seed":0,"placed":5}]'
    return EvaluationRecord(**{"name": "night", "rows": rows, "actor": "ada", "at_ns": NOW_NS, **fields})


def shadow_result(**fields: Any) -> ShadowResult:
    """Create a comparison of a shadow policy."""
    figures = {"jobs": 9, "live_placed": 8, "shadow_placed": 7, "same_node": 6, "answered": 9}
    figures |= {"live_fragmentation_milli": 5, "shadow_fragmentation_milli": 4}
    figures |= {"tries": 11, "live_wait_ms": 1 << 40, "shadow_wait_ms": 3}
    return ShadowResult(**{"at_ns": NOW_NS, "queue": DEFAULT, "live": "bestfit", "shadow": "fgd", **figures, **fields})
