"""Calls about queues, their use, their waiting jobs, and shadow policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from seaway.client.call import Answer, Call, Model, Nothing, Paged, get, page_size, part, send
from seaway.client.calls.tenancy import Seen, put

if TYPE_CHECKING:
    from seaway.wire.queues import (
        PriorityOut,
        QueueList,
        QueueOut,
        QueueStored,
        QueueUsageList,
        ScheduleOut,
        ShadowList,
        ShadowOut,
        ShareList,
        WaitingOut,
        WaitingPage,
    )

_WIRE = "seaway.wire.queues"

QUEUE: Answer[QueueOut] = Model(_WIRE, "QueueOut")
STORED: Answer[QueueStored] = Model(_WIRE, "QueueStored")
QUEUES: Answer[QueueList] = Model(_WIRE, "QueueList")
SHADOWS: Answer[ShadowList] = Model(_WIRE, "ShadowList")
QUEUE_USES: Answer[QueueUsageList] = Model(_WIRE, "QueueUsageList")
SCHEDULE: Answer[ScheduleOut] = Model(_WIRE, "ScheduleOut")
SHARES: Answer[ShareList] = Model(_WIRE, "ShareList")
PRIORITY: Answer[PriorityOut] = Model(_WIRE, "PriorityOut")
WAITING: Answer[WaitingPage] = Model(_WIRE, "WaitingPage")

WAITING_PAGE = 100


class QueueFields(TypedDict, total=False):
    """Fields of a queue as keyword arguments; see `seaway.wire.queues.QueueIn`."""

    tenant: str
    pool: str
    policy: str
    policy_options: Mapping[str, Any]
    shadow: str
    open: bool
    description: str
    allowed_taints: list[str]
    allowed_node_labels: list[str]
    parent: str
    weight: int
    priority: int
    guarantee: Mapping[str, int | float | str]
    limit: Mapping[str, int | float | str]
    order: str
    backfill: str
    preemption: str
    preempts: str
    reclaim: str
    preemptible: bool
    min_runtime: str
    start_timeout: str
    grow_cooldown: str
    elastic: str
    ageing: str
    borrowing_limit: Mapping[str, int | float | str]
    lending_limit: Mapping[str, int | float | str]


def queues() -> Call[QueueList]:
    """List queues, without those of other tenants."""
    return get("/queues", QUEUES)


def queue(name: str) -> Call[QueueOut]:
    """Return a queue."""
    return get(f"/queues/{part(name)}", QUEUE)


def put_queue(name: str, *, seen: Seen | None = None, **given: Unpack[QueueFields]) -> Call[QueueStored]:
    """Create or replace a queue; omitted fields get their defaults.

    Parameters
    ----------
    seen
        The queue that the change is based on: raises `StaleError` if the server has another version. None creates or
        changes any version.
    """
    return put(f"/queues/{part(name)}", STORED, given, seen)


def delete_queue(name: str) -> Call[None]:
    """Remove a queue without waiting and running jobs."""
    return send("DELETE", f"/queues/{part(name)}", Nothing(), repeatable=False)


def queue_usage() -> Call[QueueUsageList]:
    """Sum up allocations and waiting jobs by queue for all tenants, and by queue and tenant without other tenants."""
    return get("/queue-usage", QUEUE_USES)


def waiting(queue: str = "", *, tenant: str = "", after: str = "", limit: int | None = 25) -> Paged[WaitingOut]:
    """List the waiting jobs of a queue, or of all, with reasons and expected starts, in the order of their tries."""
    size = page_size(limit, WAITING_PAGE)
    query = {"queue": queue or None, "tenant": tenant or None, "after": after or None, "limit": size}
    return Paged(get("/waiting-jobs", WAITING, query), "jobs", limit=limit)


def schedule(
    by: str = "cluster",
    *,
    cluster: str = "",
    queue: str = "",
    tenant: str = "",
    within_s: int = 86_400,
    limit: int = 200,
) -> Call[ScheduleOut]:
    """Return running jobs with their expected ends, and expected starts of waiting jobs, by cluster or queue.

    Parameters
    ----------
    by
        ``cluster`` or ``queue``.
    within_s
        Time from now in which expected starts count, seconds.
    limit
        Maximum number of jobs. Groups share it equally.
    """
    query = {"cluster": cluster or None, "queue": queue or None, "tenant": tenant or None}
    return get("/schedule", SCHEDULE, {"by": by, **query, "within_s": within_s, "limit": limit})


def shares() -> Call[ShareList]:
    """List the shares of queues and of the tenants in them."""
    return get("/shares", SHARES)


def priority(job: str) -> Call[PriorityOut]:
    """Return the factors that order a waiting job."""
    return get(f"/jobs/{part(job)}/priority", PRIORITY)


def shadows(queue: str = "", *, limit: int | None = 100) -> Paged[ShadowOut]:
    """List comparisons of shadow policies with the active ones, newest first."""
    return Paged(get("/shadows", SHADOWS, {"queue": queue or None, "limit": page_size(limit)}), "shadows", limit=limit)
