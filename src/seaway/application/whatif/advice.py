"""Advice on a waiting job beside changes of its request: limits to raise, queues with room, and who holds what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice

from seaway.application.control.state import ControlState
from seaway.application.control.tenancy import Names
from seaway.application.views import Sees
from seaway.domain.amounts import GPUS, JOBS, MODEL_PREFIX, Amounts, amount_of, resource_text
from seaway.domain.queues import children_of
from seaway.domain.reasons import Reason
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.queueing.tree import LimitHit, Owner

MAX_QUEUES = 8
"""Maximum number of other queues that are tried."""

MAX_FOUND = 2
"""Maximum number of other queues that are named."""

MAX_HOLDERS = 3
"""Maximum number of holders that are named."""


def limit_to_raise(live: ControlState, entry: Entry, hit: LimitHit) -> str:
    """Return the limit to raise for a job that fits otherwise; empty if another limit has no room either.

    What other queues keep of a pool is no limit to raise.
    """
    if "pool" in hit.holder.names and "tenant" not in hit.holder.names:
        return ""
    requested: Amounts = {**entry.kind.requested, JOBS: 1}
    for holder in live.tree.limits_of(entry.owner):
        for name, limit in holder.limit.items():
            own = holder is hit.holder and name == hit.resource
            if not own and name in requested and holder.use.amount(name) + requested[name] > limit:
                return ""
    most = hit.held + hit.reserved + hit.requested
    limit_text = resource_text(hit.resource, hit.limit)
    return Reason("raise_limit", holder=hit.holder.label, limit=limit_text, most=resource_text(hit.resource, most))


def queues_with_room(names: Names, entry: Entry, place_in: Callable[[str], str]) -> Iterator[str]:
    """Yield other queues of the tenant of a job in which it would start now.

    Parameters
    ----------
    place_in
        Return the first place that the job would get in a queue; empty for none.
    """
    queues, tenant = names.queues.copy(), entry.spec.tenant
    parents = children_of(queues.values())
    open_to = (each for each in queues.values() if each.tenant in ("", tenant) and not parents.get(each.name))
    tried = islice((each.name for each in open_to if each.name != entry.queue), MAX_QUEUES)
    found = ((name, place) for name in tried if (place := place_in(name)))
    for name, place in islice(found, MAX_FOUND):
        yield Reason("queue_has_room", queue=name, place=place)


def holders(live: ControlState, entry: Entry, hit: LimitHit | None, sees: Sees) -> Iterator[str]:
    """Yield those that hold most of what a job waits for, with amounts.

    Tenants and users are named to those who may see them, and queues that are open to all. With a limit, these are the
    holders of its resource under it; else those of the GPUs that the job could use.
    """
    held: Counter[Owner] = Counter()
    resource = hit.resource if hit else GPUS
    products, clusters = live.tree.products(entry.kind.models), entry.job.demand.nodes.clusters
    for (job_id, _), attempt in live.attempts.items():
        if not hit and clusters and clusters.isdisjoint(attempt.clusters):
            continue
        amount = 1 if resource == JOBS else amount_of(attempt.amounts, resource)
        if not hit and entry.kind.models:
            amount = sum(attempt.amounts.get(MODEL_PREFIX + each, 0) for each in products)
        job = live.jobs.get(job_id)
        held[Owner(attempt.spec.queue, attempt.spec.tenant, job.submitted_by if job else "")] += amount
    found: Counter[tuple[str, str, str]] = Counter()
    for owner, amount in held.items():
        if not hit or hit.holder in live.tree.limits_of(owner):
            found[_shown(live, owner, sees)] += amount
    for (queue, tenant, user), amount in found.most_common(MAX_HOLDERS):
        if not amount:
            return
        figure = resource_text(resource, amount)
        if tenant:
            yield Reason("held_by_user", amount=figure, user=user, tenant=tenant, queue=queue)
        elif queue:
            yield Reason("held_in_queue", amount=figure, queue=queue)
        else:
            yield Reason("held_by_others", amount=figure)


def _shown(live: ControlState, owner: Owner, sees: Sees) -> tuple[str, str, str]:
    """Return the queue, tenant and user of an owner as far as they may be named."""
    if sees(owner.tenant):
        return owner.queue, owner.tenant, owner.user
    queue = live.queues.get(owner.queue)
    return owner.queue if queue and not queue.tenant else "", "", ""
