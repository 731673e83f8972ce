"""Warnings about quotas that are accepted: models of no GPU, limits below the use, guarantees beyond the pool."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from seaway.application.control.loop import Controller
from seaway.application.control.state import capacities
from seaway.domain.amounts import (
    NO_AMOUNTS,
    Amounts,
    amount_of,
    bounds_of_all,
    resource_text,
    unknown_models,
)
from seaway.domain.queues import Queue, children_of, subtree_guarantee
from seaway.domain.reasons import Reason
from seaway.domain.tenancy import Quota, Tenant
from seaway.scheduling.queueing.tree import Use


class QuotaWarnings:
    """Warnings about the quotas of queues and tenants, with figures."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def of_queue(self, queue: Queue) -> list[Reason]:
        """Return the warnings about a stored queue."""
        bounds = {
            "guarantee": queue.guarantee,
            "limit": queue.limit,
            "borrowing_limit": queue.borrowing_limit,
            "lending_limit": queue.lending_limit,
        }
        label = Reason("queue", queue=queue.name)
        with self._controller.lock:
            use = self._controller.live.tree.node(queue.name).use
            capacity, products = self._capacity(queue.pool), self._controller.live.fleet.gpu_models()
        return [
            *([] if products is None else unknown_models(bounds, products)),
            *_below_held(label, queue.limit, [use]),
            *self._beyond_pool(label, queue.guarantee, capacity, queue.pool),
            *self._together(queue, capacity),
        ]

    def of_tenant(self, tenant: Tenant) -> list[Reason]:
        """Return the warnings about a stored tenant."""
        return [each for pool, quota in sorted(tenant.quotas.items()) for each in self._of_quota(tenant, pool, quota)]

    def _of_quota(self, tenant: Tenant, pool: str, quota: Quota) -> Iterator[Reason]:
        """Yield the warnings about the quota of a tenant in a pool."""
        at = f"quotas.{pool}."
        bounds = {
            f"{at}guarantee": quota.guarantee,
            f"{at}limit": quota.limit,
            f"{at}user_limit": quota.user_limit,
        }
        label = Reason("tenant_in_pool", tenant=tenant.name, pool=pool)
        with self._controller.lock:
            users = self._controller.live.tree.held_by_users(pool, tenant.name)
            capacity, products = self._capacity(pool), self._controller.live.fleet.gpu_models()
        yield from () if products is None else unknown_models(bounds, products)
        yield from _below_held(label, quota.limit, users.values())
        for user, use in sorted(users.items()):
            holder = Reason("user_in_pool", tenant=tenant.name, pool=pool, user=user)
            yield from _below_held(holder, quota.user_limit, [use]) if user else ()
        yield from self._beyond_pool(label, quota.guarantee, capacity, pool)

    def _capacity(self, pool: str) -> Amounts | None:
        """Return the amounts of a pool's clusters; None before all clusters have reported."""
        live = self._controller.live
        if any(each.cluster is None for each in live.fleet.clusters.values()):
            return None
        pools = [each for each in live.pools.values() if each.name == pool]
        return capacities(pools, live.fleet.clusters.values()).get(pool, NO_AMOUNTS)

    @staticmethod
    def _beyond_pool(label: str, guarantee: Amounts, capacity: Amounts | None, pool: str) -> Iterator[Reason]:
        """Yield a warning for each guaranteed amount that the pool does not have."""
        for name, amount in sorted(guarantee.items()) if capacity is not None else ():
            if amount > (has := amount_of(capacity or NO_AMOUNTS, name)):
                figures = {"guarantee": resource_text(name, amount), "capacity": resource_text(name, has)}
                yield Reason("guarantee_beyond_pool", holder=label, pool=pool, **figures)

    def _together(self, queue: Queue, capacity: Amounts | None) -> Iterator[Reason]:
        """Yield a warning for each amount that all queues of the pool guarantee beyond what it has, but none alone."""
        queues = {**self._controller.names.queues, queue.name: queue}
        children = children_of(queues.values())
        own = subtree_guarantee(queue.name, queues, children)
        roots = [each for each in children.get("", ()) if each.pool == queue.pool]
        total = bounds_of_all([subtree_guarantee(each.name, queues, children) for each in roots])
        for name, amount in sorted(total.items()) if capacity is not None else ():
            has = amount_of(capacity or NO_AMOUNTS, name)
            if name in own and amount > has >= queue.guarantee.get(name, 0):
                figures = {"guarantee": resource_text(name, amount), "capacity": resource_text(name, has)}
                yield Reason("guarantees_beyond_pool", pool=queue.pool, **figures)


def _below_held(label: str, limit: Amounts, uses: Collection[Use]) -> Iterator[Reason]:
    """Yield a warning for each amount that is held beyond a limit."""
    for name, most in sorted(limit.items()):
        held = sum(use.amount(name) for use in uses)
        if held > most:
            figures = {"held": resource_text(name, held), "limit": resource_text(name, most)}
            yield Reason("limit_below_held", holder=label, **figures)
