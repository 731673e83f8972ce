"""Anything that is shown of queues, pools and tenants."""

from __future__ import annotations

from typing import Any

from seaway.web.pages.queues.rows import Held, Room, Seen, pool_rows, queue_rows, tenant_rows
from seaway.wire.fleet import AmountOut, ClusterOut
from seaway.wire.queues import QueueOut, QueueUsageOut
from seaway.wire.tenancy import PoolOut, TenantOut


def amount(total: int, used: int) -> AmountOut:
    """Make an amount."""
    return AmountOut(total=total, used=used, free=total - used)


def cluster(name: str, gpus: int) -> ClusterOut:
    """Make a cluster of which half is in use."""
    core, memory = amount(gpus * 1000, gpus * 500), amount(gpus * 80, gpus * 40)
    given: dict[str, Any] = {"name": name, "gpus": gpus, "gpu_milli": core, "gpu_memory_mib": memory}
    return ClusterOut.model_construct(**given)


def use(queue: str, tenant: str, waiting: int, waits_s: int, running: int) -> QueueUsageOut:
    """Make a use of one device a job."""
    held = {"gpus": running, "gpu_milli": running * 1000, "gpu_memory_mib": running * 80}
    more = {"cpu_milli": 0, "memory_mib": 0, "longest_wait_s": waits_s}
    return QueueUsageOut(queue=queue, tenant=tenant, waiting=waiting, running=running, **held, **more)


def queue(name: str, tenant: str, pool: str) -> QueueOut:
    """Make a queue."""
    return QueueOut(
        name=name,
        tenant=tenant,
        pool=pool,
        policy="bestfit",
        shadow="",
        open=True,
        description="",
        allowed_taints=[],
        allowed_node_labels=[],
        version="1",
    )


SEEN = Seen(
    queues=[queue("batch", "vision", "near"), queue("default", "", "default")],
    tenants=[TenantOut(name="vision", description="", version="1")],
    pools=[
        PoolOut(name="default", clusters=[], description="", version="1"),
        PoolOut(name="near", clusters=["a"], description="", version="1"),
    ],
    uses=[use("batch", "vision", 2, 90, 1), use("default", "speech", 1, 30, 2), use("default", "vision", 3, 60, 4)],
    clusters=[cluster("a", 4), cluster("b", 8)],
)


def test_a_queue_has_what_all_tenants_hold_in_it_and_the_room_of_its_pool() -> None:
    """Amounts add up over tenants, the longest wait counts, and a pool without clusters has them all."""
    batch, default = queue_rows(SEEN)
    assert batch["held"] == Held(2, 1, 90, 1000, 80)
    assert default["held"] == Held(4, 6, 60, 6000, 480)
    assert batch["room"] == Room(1, 4, 4000, 320, 2000, 160)
    assert default["room"] == Room(2, 12, 12_000, 960, 6000, 480)


def test_a_tenant_has_what_it_holds_in_all_queues_and_a_pool_who_uses_it() -> None:
    """A tenant's amounts add up over queues, of which only its own are named."""
    (vision,) = tenant_rows(SEEN)
    assert (vision["held"], vision["queues"]) == (Held(5, 5, 90, 5000, 400), ["batch"])
    assert [each["queues"] for each in pool_rows(SEEN)] == [["default"], ["batch"]]
