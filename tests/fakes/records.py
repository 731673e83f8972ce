"""Builders of records: small and valid, with whatever a test cares about given."""

# ruff: noqa: ANN401  # fields go straight into the values, which check them

from __future__ import annotations

from random import Random
from typing import Any

from seaway.application.records import (
    AgentRecord,
    Attempt,
    AuditEntry,
    ClusterName,
    ClusterSample,
    Cordon,
    EvaluationRecord,
    Event,
    IdempotencyKey,
    JobRecord,
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
from seaway.domain.device import DeviceMode
from seaway.domain.job import Demand, DeviceRules, NodeRules, ResourceRequest
from seaway.domain.job_spec import JobIds, JobSpec, Run
from seaway.domain.job_state import AttemptState, JobState
from seaway.domain.network import NetworkNeed
from seaway.domain.node import Toleration
from seaway.domain.placement import DeviceSlice, Placement
from seaway.domain.tenancy import DEFAULT

NOW_NS = 1_800_000_000_000_000_000
"""When all of this happens."""

IDS = JobIds(Random(7))


def draw_id() -> str:
    """Return an id of a job that was not drawn before."""
    return IDS.generate(NOW_NS)


def spec(name: str = "train", **fields: Any) -> JobSpec:
    """Make a spec that asks for one core."""
    return JobSpec(name, **{"demand": Demand(ResourceRequest(cpu_milli=1000)), **fields})


def full_spec() -> JobSpec:
    """Make a spec in which every field is unlike its default."""
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
    return JobSpec("full", demand, 3, True, need, -5, "team-a", "fast", "ray", run, 60, 3600, 2, labels, True, True)


def job_record(**fields: Any) -> JobRecord:
    """Make a job that was just submitted."""
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
    """Make an attempt of a job: one replica on one device."""
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
    """Make something that a cluster is to be told about a job."""
    given = {"cluster": "c1", "verb": Verb.CREATE, "created_ns": NOW_NS}
    return PendingCommand(job.id, attempt, **{**given, **fields})


def event_of(job: JobRecord | None = None, **fields: Any) -> Event:
    """Make an event of a job, or of the fleet."""
    given: dict[str, Any] = {"at_ns": NOW_NS, "kind": "state", "reason": "because", "actor": "ada"}
    if job is not None:
        given |= {"tenant": job.spec.tenant, "job_id": job.id, "state": job.state.value}
    return Event(**{**given, **fields})


def key_of(job: JobRecord, key: str = "k", **fields: Any) -> IdempotencyKey:
    """Make an idempotency key that a job was submitted with."""
    return IdempotencyKey(
        **{"tenant": DEFAULT, "key": key, "digest": "d", "job_id": job.id, "created_ns": NOW_NS, **fields}
    )


def token(**fields: Any) -> Token:
    """Make a token."""
    given = {"id": "t1", "name": "ci", "digest": "0" * 64, "role": Role.USER, "tenant": DEFAULT}
    return Token(**{**given, "created_ns": NOW_NS, "created_by": "ada", **fields})


def audit_entry(**fields: Any) -> AuditEntry:
    """Make an entry of the audit log."""
    given = {"actor": "ada", "role": "admin", "tenant": "", "verb": "POST submit", "target": "/jobs", "status": 201}
    return AuditEntry(**{"at_ns": NOW_NS, **given, **fields})


def cordon(**fields: Any) -> Cordon:
    """Make a cordon of a whole cluster."""
    given = {"cluster": "c1", "node": "", "drain": True, "reason": "repair", "actor": "ada", "at_ns": NOW_NS}
    return Cordon(**{**given, **fields})


def cluster_name(**fields: Any) -> ClusterName:
    """Make the name of a cluster."""
    return ClusterName(**{"name": "c1", "uid": "u1", "server": "s1", **fields})


def cluster_sample(**fields: Any) -> ClusterSample:
    """Make a sample of a cluster."""
    names: tuple[str, ...] = ("nodes", "gpus", "gpu_milli", "gpu_milli_used", "gpu_memory_mib", "gpu_memory_mib_used")
    names += ("cpu_milli", "cpu_milli_used", "memory_mib", "memory_mib_used", "jobs")
    figures = {name: at for at, name in enumerate(names, 1)}
    return ClusterSample(**{"at_ns": NOW_NS, "cluster": "c1", "state": "up", **figures, **fields})


def link_sample(**fields: Any) -> LinkSample:
    """Make a sample of a link."""
    figures = {"latency_ns": 1, "jitter_ns": 2, "loss_ppm": 3, "bandwidth_mbps": 4, "used_mbps": 5}
    return LinkSample(**{"at_ns": NOW_NS, "source": "a", "target": "b", **figures, **fields})


def network_record(**fields: Any) -> NetworkRecord:
    """Make a document of the network."""
    return NetworkRecord(**{"text": '{"gateways": []}', "version": 3, "actor": "ada", "at_ns": NOW_NS, **fields})


def agent_record(**fields: Any) -> AgentRecord:
    """Make what is known of an agent."""
    figures = {"started_ns": NOW_NS - 9, "number": 8, "at_ns": NOW_NS, "address": "::1"}
    figures |= {"reports": 7, "rounds": 6, "dropped": 5, "discarded": 4}
    return AgentRecord(**{"gateway": "gw-1", **figures, **fields})


def path_record(**fields: Any) -> PathRecord:
    """Make what is known of a path."""
    given = {"active": "via-2", "active_ns": NOW_NS - 1, "applied": "direct", "applied_ns": NOW_NS, "why": "near"}
    return PathRecord(**{"source": "gw-1", "target": "gw-2", **given, **fields})


def policy_record(**fields: Any) -> PolicyRecord:
    """Make a trained policy, with a file that is none."""
    given = {"name": "tiny", "digest": "0f" * 32, "content": b"\x00PK\xff", "actor": "ada", "at_ns": NOW_NS}
    return PolicyRecord(**{**given, **fields})


def evaluation_record(**fields: Any) -> EvaluationRecord:
    """Make an evaluation, with a row that has hardly a figure."""
    rows = '[{"policy":"fgd","level":"node","instance":"seed0","seed":0,"placed":5}]'
    return EvaluationRecord(**{"name": "night", "rows": rows, "actor": "ada", "at_ns": NOW_NS, **fields})


def shadow_result(**fields: Any) -> ShadowResult:
    """Make a comparison."""
    figures = {"jobs": 9, "live_placed": 8, "shadow_placed": 7, "same_node": 6, "answered": 9}
    figures |= {"live_fragmentation_milli": 5, "shadow_fragmentation_milli": 4}
    return ShadowResult(**{"at_ns": NOW_NS, "queue": DEFAULT, "live": "bestfit", "shadow": "fgd", **figures, **fields})
