"""Shares of queues and tenants, and the factors that order a waiting job, from the live state on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from seaway.application.control.loop import Controller
from seaway.domain.amounts import NO_AMOUNTS, Amounts
from seaway.domain.errors import ConflictError
from seaway.domain.job_record import JobRecord
from seaway.domain.queues import Order, Queue, children_of
from seaway.domain.reasons import Reason
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.queueing.discipline import SortKey
from seaway.scheduling.queueing.lanes import LaneName
from seaway.scheduling.queueing.tree import QueueNode

MAX_AHEAD = 3
"""Maximum number of names before a queue, a tenant or a job that are shown."""

Name = TypeVar("Name")


@dataclass(frozen=True, slots=True)
class Share:
    """Share of a queue with its descendants, or of one tenant in a queue.

    Attributes
    ----------
    tenant
        Empty for the whole queue.
    depth
        Number of ancestors of the queue.
    weight_share
        Its weight as a share of the weights of its siblings, 0 to 1; of a tenant, among those with jobs in the queue.
    guarantee
        Guaranteed share of the pool, 0 to 1.
    used, past
        Dominant share of the pool that its jobs hold, and held on average in the past.
    beyond
        Used and past share beyond the guarantee, divided by the weight. The smallest goes first.
    """

    queue: str
    tenant: str
    depth: int
    weight: int
    weight_share: float
    guarantee: float
    used: float
    past: float
    beyond: float


@dataclass(frozen=True, slots=True)
class Factor:
    """Place of a waiting job's queue among its siblings, of its tenant in the queue, or of the job itself.

    Attributes
    ----------
    level
        ``queue``, ``tenant`` or ``job``.
    place, of
        Place from 1, and the number of siblings with waiting jobs.
    within_guarantee
        Whether the guarantee has room for the job.
    priority
        Of a queue or a job.
    ageing
        Points of priority for the time that the job waited.
    share, past
        Dominant share beyond the guarantee, now and in the past; of a tenant, the whole share.
    value
        What is compared: the shares divided by the weight, or the priority of a job with its ageing.
    ahead
        The first names before it.
    """

    level: str
    name: str
    place: int
    of: int
    within_guarantee: bool = False
    priority: int = 0
    ageing: float = 0.0
    share: float = 0.0
    past: float = 0.0
    weight: int = 1
    value: float = 0.0
    ahead: tuple[str, ...] = ()


class Shares:
    """Views of shares. Thread-safe."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def shares(self, tenant: str = "") -> list[Share]:
        """Return the shares of all queues in the order of the tree, each followed by its tenants.

        Parameters
        ----------
        tenant
            Tenant that asks: it gets its own queues and those of all tenants, and only its own share in the latter.
        """
        queues = self._controller.names.queues.copy()
        children = children_of(queues.values())
        with self._controller.lock:
            return list(self._below("", 0, children, tenant))

    def _below(self, parent: str, depth: int, children: Mapping[str, Sequence[Queue]], viewer: str) -> Iterator[Share]:
        siblings = children.get(parent, ())
        weights = sum(each.weight for each in siblings)
        for queue in siblings:
            node = self._controller.live.tree.node(queue.name)
            if viewer in {"", queue.tenant}:
                past = node.past_share_beyond_guarantee()
                yield Share(
                    queue.name,
                    "",
                    depth,
                    queue.weight,
                    queue.weight / weights if weights else 0.0,
                    node.share_of(node.guarantee),
                    node.share_of(node.use.held),
                    node.share_of(node.past),
                    (node.share_beyond_guarantee() + past) / (queue.weight or 1),
                )
            yield from self._tenants(node, depth, viewer)
            yield from self._below(queue.name, depth + 1, children, viewer)

    def _tenants(self, node: QueueNode, depth: int, viewer: str) -> Iterator[Share]:
        tree = self._controller.live.tree
        names = sorted(node.tenants.keys() | set(tree.past_tenants(node.queue.name)))
        known = [tree.tenant(node.queue.name, name) for name in names]
        weights = sum(each.weight for each in known)
        for each in known:
            if viewer in {"", each.name}:
                used, past = node.share_of(each.use.held), node.share_of(each.past)
                share = each.weight / weights if weights else 0.0
                guarantee = node.share_of(each.guarantee)
                beyond = (used + past) / (each.weight or 1)
                yield Share(node.queue.name, each.name, depth, each.weight, share, guarantee, used, past, beyond)

    def factors(self, job: JobRecord) -> list[Factor]:
        """Return the factors that order a waiting job, from the root of the tree to the job.

        Raises
        ------
        ConflictError
            If the job does not wait, or cannot be tried now.
        """
        with self._controller.lock:
            own = self._controller.live.waiting.get(job.id)
            entries = list(self._controller.live.waiting.entries())
            blocked = self._controller.live.blocked(job) if job.state.waits else ""
        if own is None:
            raise ConflictError(
                Reason("job_does_not_wait", state=job.state.value)
                if not job.state.waits
                else Reason("no_position_now", why=blocked or Reason("being_placed"))
            )
        first: dict[LaneName, Entry] = {}
        for each in entries:
            if (known := first.get(each.lane)) is None or each.order < known.order:
                first[each.lane] = each
        with self._controller.lock:
            return [*self._of_queues(own, first), *self._of_tenant(own, first), self._of_job(own, entries)]

    def _of_queues(self, own: Entry, first: Mapping[LaneName, Entry]) -> Iterator[Factor]:
        tree, discipline = self._controller.live.tree, self._controller.live.waiting.discipline
        requests: dict[QueueNode, tuple[SortKey, Amounts]] = {}
        for (queue, _), entry in first.items():
            for node in tree.node(queue).path:
                known = requests.get(node)
                if known is None or entry.order < known[0]:
                    requests[node] = entry.order, entry.kind.requested
        requested = own.kind.requested
        for node in reversed(tree.node(own.queue).path):
            keys = {
                each.queue.name: discipline.queue_key(each, wanted)
                for each, (_, wanted) in requests.items()
                if each.parent is node.parent and each is not node
            }
            place, of, ahead = _placed(discipline.queue_key(node, requested), keys)
            share, past = node.share_beyond_guarantee(), node.past_share_beyond_guarantee()
            weight, within = node.queue.weight, node.guarantees(requested)
            value = node.share_of_guarantee() if within else (share + past) / (weight or 1)
            yield Factor(
                "queue", node.queue.name, place, of, within, node.queue.priority, 0.0, share, past, weight, value, ahead
            )

    def _of_tenant(self, own: Entry, first: Mapping[LaneName, Entry]) -> Iterator[Factor]:
        tree, discipline = self._controller.live.tree, self._controller.live.waiting.discipline
        node = tree.node(own.queue)
        if node.queue.order is not Order.FAIR:
            return
        tenant = tree.tenant(*own.lane)
        keys = {
            name: discipline.tenant_key(node, tree.tenant(queue, name), entry.order, entry.kind.requested)
            for (queue, name), entry in first.items()
            if queue == own.queue and name != tenant.name
        }
        key = discipline.tenant_key(node, tenant, own.order, own.kind.requested)
        place, of, ahead = _placed(key, keys)
        share, past = node.share_of(tenant.use.held), node.share_of(tenant.past or NO_AMOUNTS)
        within, value = tenant.guarantees(own.kind.requested), (share + past) / (tenant.weight or 1)
        yield Factor("tenant", tenant.name, place, of, within, 0, 0.0, share, past, tenant.weight, value, ahead)

    def _of_job(self, own: Entry, entries: Iterable[Entry]) -> Factor:
        queue = self._controller.live.tree.node(own.queue).queue
        of_tenant = queue.order is Order.FAIR
        keys = {
            each: each.order
            for each in entries
            if each is not own and each.queue == own.queue and (not of_tenant or each.lane == own.lane)
        }
        place, of, ahead = _placed(own.order, keys, lambda each: each.spec.name)
        waited_s = (self._controller.live.clock.now_ns() - own.submitted_ns) / 1e9
        ageing = waited_s / queue.ageing_s if queue.ageing_s else 0.0
        priority = 0 if queue.order in {Order.FIFO, Order.SHORTEST} else own.spec.priority
        value = priority + ageing
        return Factor("job", own.spec.name, place, of, False, priority, ageing, value=value, ahead=ahead)


def _placed(
    own: SortKey, others: Mapping[Name, SortKey], text: Callable[[Name], str] = str
) -> tuple[int, int, tuple[str, ...]]:
    """Return the place of a key among others, the number of all, and the names of the first ones before it."""
    before = sorted(((key, name) for name, key in others.items() if key < own), key=lambda each: each[0])
    return len(before) + 1, len(others) + 1, tuple(text(name) for _, name in before[:MAX_AHEAD])
