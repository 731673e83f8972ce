"""Anything that is shown of queues, pools and tenants."""

from __future__ import annotations

from typing import Any

from seaway.web.pages.queues.rows import (
    Held,
    Room,
    Seen,
    bars_of,
    full_amounts,
    pool_rows,
    queue_rows,
    shown_rows,
    tenant_rows,
)
from seaway.wire.fleet import AmountOut, ClusterOut
from seaway.wire.queues import QueueOut, QueueTotalsOut, QueueUsageOut, TenantTotalsOut
from seaway.wire.tenancy import PoolOut, QuotaOut, TenantOut


def amount(total: int, used: int) -> AmountOut:
    """Make an amount."""
    return AmountOut(total=total, used=used, free=total - used)


def cluster(name: str, gpus: int) -> ClusterOut:
    """Make a cluster of which half is in use."""
    core, memory = amount(gpus * 1000, gpus * 500), amount(gpus * 80, gpus * 40)
    given: dict[str, Any] = {"name": name, "state": "up", "gpus": gpus, "gpu_milli": core, "gpu_memory_mib": memory}
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


def test_a_queue_has_what_all_tenants_hold_in_it() -> None:
    """Amounts add up over tenants, and the longest wait counts."""
    batch, default = queue_rows(SEEN)
    assert batch["held"] == Held(2, 1, 90, 1000, 80)
    assert default["held"] == Held(4, 6, 60, 6000, 480)


def test_queues_are_in_the_order_of_the_tree() -> None:
    """Children follow their parent, which has the jobs of all; a queue below a hidden parent is a root."""
    tree = [("z", "b"), ("b", "a"), ("c", "a"), ("a", ""), ("h", "hidden")]
    queues = [queue(name, "", "near").model_copy(update={"parent": parent}) for name, parent in tree]
    rows = list(queue_rows(Seen(queues=queues, uses=[use("z", "t", 2, 9, 1), use("c", "t", 1, 8, 2)])))
    assert [(each["queue"].name, each["depth"], each["leaf"]) for each in rows] == [  # type: ignore[attr-defined]
        ("a", 0, False),
        ("b", 1, False),
        ("z", 2, True),
        ("c", 1, True),
        ("h", 0, True),
    ]
    assert [each["held"].waiting for each in rows] == [3, 2, 2, 1, 0]  # type: ignore[attr-defined]


Amounts = dict[str, int | float | str]


def totals(used: float, guarantee: Amounts, limit: Amounts) -> QueueTotalsOut:
    """Make the sums of a queue that uses GPUs."""
    fields: dict[str, Any] = {"used": {"gpus": used}, "guarantee": guarantee, "limit": limit}
    return QueueTotalsOut(queue="q", waiting=0, running=1, borrowed={}, **fields)


def test_folded_queues_hide_what_is_below_and_a_search_shows_what_is_above() -> None:
    """A fold hides all descendants; a search finds queues also in folded ones, with their parents."""
    tree = [("all", 0), ("a", 1), ("a-deep", 2), ("b", 1), ("other", 0)]
    rows = [{"queue": queue(name, "", "default"), "depth": depth} for name, depth in tree]

    def names(folded: set[str], search: str) -> list[str]:
        return [each["queue"].name for each in shown_rows(rows, folded, search)]

    assert names(set(), "") == [name for name, _ in tree]
    assert names({"a"}, "") == ["all", "a", "b", "other"]
    assert names({"all"}, "") == ["all", "other"]
    assert names({"all"}, "DEEP") == ["all", "a", "a-deep"]
    assert names(set(), "zz") == []


def test_bars_end_at_the_limit_of_the_root_or_at_its_pool() -> None:
    """A bar is as long as the own limit, so that a queue at its limit is full; without one, as the pool."""
    full = full_amounts(queue("q", "", "near"), Room(gpus=8, gpu_memory_mib=640))
    assert full == {"gpus": 8000, "gpu_memory": 640}
    limited = queue("q", "", "near").model_copy(update={"limit": {"gpus": 4, "cpu": 2}})
    assert full_amounts(limited, Room(gpus=8)) == {"gpus": 4000, "gpu_memory": 0, "cpu": 2000}
    (bar,) = bars_of(totals(2, {}, {"gpus": 4}), full)
    assert (bar.width(bar.used), bar.width(bar.limit or 0)) == (50, 100)


def test_use_beyond_a_guarantee_is_borrowed() -> None:
    """A queue without a guarantee borrows nothing to speak of, and neither does one whose use is not known in full."""
    full = {"gpus": 8000}
    cases = (
        (totals(5, {"gpus": 3}, {}), 2000),
        (totals(2, {"gpus": 3}, {}), 0),
        (totals(5, {}, {}), 0),
    )
    for given, borrowed in cases:
        assert [each.borrowed for each in bars_of(given, full)] == [borrowed]


def test_other_resources_have_a_bar_where_they_are_guaranteed_or_limited() -> None:
    """A bar of a model is named by the model; a bar without a known end ends at its own limit."""
    bars = list(bars_of(totals(1, {"gpus/a100": 2}, {"memory": "4Gi"}), {"gpus": 8000}))
    assert [(each.resource, each.model, each.full) for each in bars] == [
        ("gpus", "", 8000),
        ("gpus/a100", "a100", 2000),
        ("memory", "", 4096),
    ]


def test_a_tenant_has_what_it_holds_in_all_queues_and_a_pool_who_uses_it() -> None:
    """A tenant's amounts add up over queues, of which only its own are named."""
    (vision,) = tenant_rows(SEEN)
    assert (vision["held"], vision["queues"]) == (Held(5, 5, 90, 5000, 400), ["batch"])
    assert [each["queues"] for each in pool_rows(SEEN)] == [["default"], ["batch"]]


def test_the_quotas_of_a_tenant_have_bars_up_to_their_limits() -> None:
    """Each pool has bars of its quota; jobs are counted; only a tenant with a pool left can get another quota."""
    quota = QuotaOut(
        guarantee={"gpus": 1}, limit={"gpus": 4, "jobs": 9}, max_waiting=5, user_limit={}, user_max_waiting=1
    )
    sums: dict[str, Any] = {"used": {"gpus": 3}, "guarantee": quota.guarantee, "limit": quota.limit, "max_waiting": 5}
    seen = Seen(
        tenants=[TenantOut(name="vision", description="", quotas={"near": quota}, version="1")],
        pools=SEEN.pools[1:],
        tenant_totals=[TenantTotalsOut(tenant="vision", pool="near", waiting=2, running=3, **sums)],
        clusters=SEEN.clusters,
    )
    (vision,) = tenant_rows(seen)
    near: Any = vision["pools"][0]  # type: ignore[index]  # a list
    bars = [(each.resource, each.used, each.guarantee, each.borrowed, each.limit, each.full) for each in near["bars"]]
    assert bars == [("gpus", 3000, 1000, 0, 4000, 4000), ("jobs", 3, 0, 0, 9, 9)]
    assert (near["quota"], vision["more"]) == (quota, False)
    (other,) = tenant_rows(Seen(tenants=seen.tenants, pools=SEEN.pools))
    assert other["more"]
