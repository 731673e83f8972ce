"""Requests and views of tenants, pools and queues."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field

from seaway.application.fleet.queues import Place, QueueUsage
from seaway.application.records import ShadowResult
from seaway.application.views import Reason
from seaway.domain.queues import Queue
from seaway.domain.tenancy import DEFAULT, Pool, Tenant
from seaway.wire.explanations import FilteredOut, reason_fields
from seaway.wire.fields import LabelKey, Line, Name, NameOrNone, References, moment, no_entries
from seaway.wire.job_out import JobOut, job_fields
from seaway.wire.message import Incoming, Shown, fields_of

Keys = Annotated[list[LabelKey | Literal["*"]], Field(max_length=64)]


class QueueUsageOut(Shown):
    """Allocations and waiting jobs of a tenant in a queue."""

    queue: str
    tenant: str
    waiting: int
    """Number of waiting jobs."""
    running: int
    """Number of jobs with allocations."""
    longest_wait_s: int
    """Longest wait of the waiting jobs, seconds; 0 if no job waits."""
    gpus: int
    """Number of allocated device shares."""
    gpu_milli: int
    gpu_memory_mib: int
    cpu_milli: int
    memory_mib: int


class QueueUsageList(Shown):
    """Allocations and waiting jobs, by queue and tenant, without empty ones."""

    uses: list[QueueUsageOut]


class WaitingOut(JobOut):
    """A waiting job."""

    position: int
    """Position among the waiting jobs of the tenant in the queue, from 1."""
    message: str
    """Reason for the wait, on the current fleet."""
    code: str = ""
    """Kind of the reason, as in `GET /jobs/{job}/explain`."""
    params: dict[str, str | int] = Field(default_factory=dict)
    nodes_evaluated: int = 0
    """Number of evaluated nodes."""
    filtered: list[FilteredOut] = Field(default_factory=list)


class WaitingPage(Shown):
    """Waiting jobs of a queue, in scheduling order."""

    jobs: list[WaitingOut]
    total: int
    """Number of waiting jobs."""
    next: str | None
    """Cursor of the next page: send it as `after`; null on the last page."""


def use_fields(use: QueueUsage) -> dict[str, Any]:
    """Return the fields of `QueueUsageOut` for the usage of a queue."""
    return fields_of(
        QueueUsageOut,
        use,
        longest_wait_s=int(use.longest_wait_s),
    )


def waiting_fields(place: Place, reason: Reason) -> dict[str, Any]:
    """Return the fields of `WaitingOut` for a waiting job."""
    reported = reason_fields(reason)
    explained = reported["explanation"] or {"nodes": 0, "filtered": []}
    named = {name: reported[name] for name in ("message", "code", "params")}
    return {
        **job_fields(place.job),
        "position": place.position,
        **named,
        "nodes_evaluated": explained["nodes"],
        "filtered": explained["filtered"],
    }


def versioned(fields: dict[str, Any]) -> dict[str, Any]:
    """Add a version: a hash of the fields."""
    return {**fields, "version": hashlib.sha256(orjson.dumps(fields)).hexdigest()[:16]}


class TenantIn(Incoming):
    """A tenant, the owner of jobs. The name is part of the path."""

    description: Line = ""

    def tenant(self, name: str) -> Tenant:
        """Return the record."""
        return Tenant(name, self.description)


class PoolIn(Incoming):
    """A part of the fleet. The name is part of the path."""

    clusters: References = no_entries()
    """Clusters of the pool; empty for all current and future clusters."""
    description: Line = ""

    def pool(self, name: str) -> Pool:
        """Return the record."""
        return Pool(name, frozenset(self.clusters), self.description)


class QueueIn(Incoming):
    """A queue. The name is part of the path."""

    tenant: NameOrNone = ""
    """Tenant whose jobs the queue accepts; empty for all tenants."""
    pool: Name = DEFAULT
    """Pool of clusters for the jobs."""
    policy: Name = "bestfit"
    """Policy that places the jobs."""
    shadow: NameOrNone = ""
    """Shadow policy, whose decisions are recorded for comparison but not applied; empty for none."""
    open: bool = True
    """True if the queue accepts new jobs."""
    description: Line = ""
    allowed_taints: Keys = no_entries()
    """Keys of the taints that jobs may tolerate; `*` for all."""
    allowed_node_labels: Keys = no_entries()
    """Keys of the node labels that jobs may require; `*` for all."""

    def queue(self, name: str) -> Queue:
        """Return the record."""
        return Queue(
            name,
            self.tenant,
            self.pool,
            self.policy,
            self.shadow,
            self.open,
            self.description,
            tuple(sorted({*self.allowed_taints})),
            tuple(sorted({*self.allowed_node_labels})),
        )


class TenantOut(Shown):
    """A tenant, the owner of jobs."""

    name: str
    description: str
    version: str
    """Version, used as ETag."""


class TenantList(Shown):
    """Tenants, by name."""

    tenants: list[TenantOut]


class PoolOut(Shown):
    """A part of the fleet."""

    name: str
    clusters: list[str]
    """Clusters of the pool; empty for all."""
    description: str
    version: str
    """Version, used as ETag."""


class PoolList(Shown):
    """Pools, by name."""

    pools: list[PoolOut]


class QueueOut(Shown):
    """A queue."""

    name: str
    tenant: str
    pool: str
    policy: str
    shadow: str
    open: bool
    description: str
    allowed_taints: list[str]
    allowed_node_labels: list[str]
    version: str
    """Version, used as ETag."""


class QueueList(Shown):
    """Queues, by name."""

    queues: list[QueueOut]


class ShadowOut(Shown):
    """Comparison of a shadow policy with the live policy."""

    id: int
    at: str
    queue: str
    live: str
    shadow: str
    jobs: int
    live_placed: int
    shadow_placed: int
    same_node: int
    live_fragmentation_milli: int
    shadow_fragmentation_milli: int
    answered: int
    """Number of jobs that the shadow policy decided itself. A trained policy does not decide if nothing fits."""
    fallbacks: int
    """Number of jobs that the fallback decided instead."""


class ShadowList(Shown):
    """Comparisons, newest first."""

    shadows: list[ShadowOut]
    next: str | None
    """Cursor of the next page: send it as `after`; null on the last page."""


def tenant_fields(tenant: Tenant) -> dict[str, Any]:
    """Return the fields of `TenantOut` for a tenant."""
    return versioned({"name": tenant.name, "description": tenant.description})


def pool_fields(pool: Pool) -> dict[str, Any]:
    """Return the fields of `PoolOut` for a pool."""
    return versioned({"name": pool.name, "clusters": sorted(pool.clusters), "description": pool.description})


def queue_fields(queue: Queue) -> dict[str, Any]:
    """Return the fields of `QueueOut` for a queue."""
    fields = {
        "name": queue.name,
        "tenant": queue.tenant,
        "pool": queue.pool,
        "policy": queue.policy,
        "shadow": queue.shadow,
        "open": queue.open,
        "description": queue.description,
        "allowed_taints": list(queue.allowed_taints),
        "allowed_node_labels": list(queue.allowed_node_labels),
    }
    return versioned(fields)


def shadow_fields(result: ShadowResult) -> dict[str, Any]:
    """Return the fields of `ShadowOut` for a comparison."""
    return fields_of(
        ShadowOut,
        result,
        at=moment(result.at_ns),
    )
