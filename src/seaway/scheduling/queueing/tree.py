"""The tree of queues with the amounts that their jobs hold, limits, and shares.

Amounts of a queue include those of its descendants. Totals are updated with each change, so that a decision costs the
depth of the tree and not the number of queues.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from seaway.domain.amounts import (
    GPUS,
    MODEL_PREFIX,
    NO_AMOUNTS,
    RESOURCES,
    Amounts,
    add,
    figure_text,
    model_resource,
    resource_text,
)
from seaway.domain.queues import MAX_DEPTH, Queue, children_of, subtree_guarantee

Key = tuple[str, int]
"""Job ID and attempt number."""


@dataclass(slots=True, eq=False)
class Use:
    """Amounts that attempts hold together.

    Attributes
    ----------
    attempts
        Number of attempts, also of those that hold nothing.
    """

    held: dict[str, int] = field(default_factory=dict)
    attempts: int = 0

    def change(self, amounts: Amounts, times: int) -> None:
        """Add an attempt (`times` is 1) or remove one (-1)."""
        add(self.held, amounts, times)
        self.attempts += times


@dataclass(frozen=True, slots=True)
class LimitHit:
    """Limit of a queue that leaves no room for a job.

    Attributes
    ----------
    queue
        Name of the queue with the limit: the job's own queue or an ancestor.
    held, limit, requested
        Amounts of the resource: held by the queue, its limit, and requested by the job.
    """

    queue: str
    resource: str
    held: int
    limit: int
    requested: int

    @property
    def message(self) -> str:
        """The limit as a clause, such as ``queue 'vision' holds 16 of its limit of 16 gpus``."""
        most = resource_text(self.resource, self.limit)
        said = f"queue {self.queue!r} holds {figure_text(self.resource, self.held)} of its limit of {most}"
        if self.held < self.limit:
            said += f", and this job requests {figure_text(self.resource, self.requested)}"
        return said


class QueueNode:
    """A queue in the tree.

    Attributes
    ----------
    path
        The queue itself and its ancestors, up to the root.
    use
        Amounts that jobs of the queue and its descendants hold.
    guarantee
        Its guarantee. For resources that it does not name, that is the sum over its children.
    capacity
        Amounts of the clusters of its pool.
    model_limits
        Whether the queue or an ancestor limits single models.
    """

    __slots__ = ("_shares", "capacity", "guarantee", "model_limits", "path", "queue", "tenants", "use")

    def __init__(self, queue: Queue, above: QueueNode | None, guarantee: Amounts, capacity: Amounts) -> None:
        self.queue = queue
        self.path: tuple[QueueNode, ...] = (self, *(above.path if above else ()))
        self.use = Use()
        self.tenants: dict[str, Use] = {}
        self.guarantee = guarantee
        self.capacity = capacity
        self.model_limits = any(name.startswith(MODEL_PREFIX) for each in self.path for name in each.queue.limit)
        named = {name: guarantee[name] / capacity.get(name, 0) for name in guarantee if capacity.get(name)}
        implied = max((named[name] for name in RESOURCES if name in named), default=0.0)
        self._shares = [(name, capacity.get(name) or 1, named.get(name, implied)) for name in RESOURCES]

    @property
    def parent(self) -> QueueNode | None:
        """The queue that it is part of; None for a root."""
        return self.path[1] if len(self.path) > 1 else None

    def share_of(self, held: Amounts) -> float:
        """Return the dominant share of amounts: the largest share of the pool's capacity over all resources.

        GPUs of single models are not resources of their own here. Their memory weighs them.

        References
        ----------
        Ghodsi et al., Dominant Resource Fairness, NSDI 2011, section 4.1.
        """
        return max(held.get(name, 0) / capacity for name, capacity, _ in self._shares)

    def share_beyond_guarantee(self) -> float:
        """Return the dominant share of what the queue holds beyond its guarantee.

        A guarantee of a tenth of a pool's GPUs stands for a tenth of the resources that it does not name.
        """
        held = self.use.held
        if not self.guarantee:
            return self.share_of(held)
        return max(0.0, *(held.get(name, 0) / capacity - share for name, capacity, share in self._shares))

    def guarantees(self, requested: Amounts) -> bool:
        """Report whether the guarantee has room for a job. Resources that it does not name do not matter."""
        named = [name for name in requested if name in self.guarantee]
        held = self.use.held
        return bool(named) and all(held.get(name, 0) + requested[name] <= self.guarantee[name] for name in named)

    def share_of_guarantee(self) -> float:
        """Return the used share of the guarantee: the largest over its resources; 0 without a guarantee."""
        held = self.use.held
        return max((held.get(name, 0) / most for name, most in self.guarantee.items() if most), default=0.0)


class QueueTree:
    """The queues, and the amounts that attempts hold in them.

    An attempt counts in the queue that it was placed in, even if that queue no longer exists.

    Attributes
    ----------
    version
        Counter of changes of queues and capacities. Nodes of earlier versions are outdated.
    changed
        Queues and tenants whose use changed. A reader clears it.
    fell
        Names of queues whose use fell, or whose limit may have changed. A reader clears it.
    """

    def __init__(self, queues: Iterable[Queue] = (), capacities: Mapping[str, Amounts] | None = None) -> None:
        self.version = 0
        self.changed: set[tuple[str, str]] = set()
        self.fell: set[str] = set()
        self._queues = {queue.name: queue for queue in queues}
        self._capacities: Mapping[str, Amounts] = capacities or {}
        self._held: dict[Key, tuple[str, str, Amounts]] = {}
        self._uses: dict[str, dict[str, Use]] = defaultdict(dict)  # by queue and tenant
        self._nodes: dict[str, QueueNode] = {}
        self._built = -1

    def copy(self) -> QueueTree:
        """Return a tree with the same queues and amounts."""
        twin = QueueTree(self._queues.values(), self._capacities)
        for key, (queue, tenant, amounts) in self._held.items():
            twin.hold(key, queue, tenant, amounts)
        return twin

    # Queues.

    def set_queues(self, queues: Iterable[Queue]) -> None:
        """Replace the queues."""
        self._queues = {queue.name: queue for queue in queues}
        self.version += 1

    def set_capacities(self, capacities: Mapping[str, Amounts]) -> None:
        """Set the capacity of each pool."""
        if capacities != self._capacities:
            self._capacities = capacities
            self.version += 1

    def node(self, name: str) -> QueueNode:
        """Return a queue. A queue that does not exist is a root without guarantee and limit."""
        self._build()
        node = self._nodes.get(name)
        if node is None:
            queue = self._queues.get(name) or Queue(name)
            node = self._nodes[name] = QueueNode(queue, None, NO_AMOUNTS, NO_AMOUNTS)
            self._sum(node)
        return node

    def _build(self) -> None:
        """Create the nodes again after a change of queues or capacities."""
        if self._built == self.version:
            return
        self._built = self.version
        self._nodes = {}
        children = children_of(self._queues.values())
        for root in children.get("", ()):
            self._add(root, None, children)
        for node in self._nodes.values():
            self._sum(node)
        self.fell.update(self._nodes)

    def _add(self, queue: Queue, above: QueueNode | None, children: Mapping[str, Sequence[Queue]]) -> None:
        guarantee = subtree_guarantee(queue.name, self._queues, children)
        node = QueueNode(queue, above, guarantee, self._capacities.get(queue.pool, NO_AMOUNTS))
        self._nodes[queue.name] = node
        if len(node.path) < MAX_DEPTH:
            for child in children.get(queue.name, ()):
                self._add(child, node, children)

    def _sum(self, node: QueueNode) -> None:
        """Add the amounts that were held before the node was created."""
        node.tenants = self._uses[node.queue.name]
        for use in node.tenants.values():
            for each in node.path:
                add(each.use.held, use.held)
                each.use.attempts += use.attempts

    # Amounts.

    def hold(self, key: Key, queue: str, tenant: str, amounts: Amounts) -> None:
        """Set the amounts of an attempt, instead of earlier ones."""
        self.withdraw(key)
        self._held[key] = (queue, tenant, amounts)
        self._change(queue, tenant, amounts, 1)

    def release(self, key: Key) -> None:
        """Remove the amounts of an attempt, if it holds any."""
        if queue := self.withdraw(key):
            self.note_fall(queue)

    def note_fall(self, queue: str) -> None:
        """Record that the use of a queue fell."""
        self.fell.update(each.queue.name for each in self.node(queue).path)

    def withdraw(self, key: Key) -> str:
        """Remove the amounts of an attempt that is about to hold others; return its queue, or nothing without any."""
        held = self._held.pop(key, None)
        if held is None:
            return ""
        self._change(*held, -1)
        return held[0]

    def _change(self, queue: str, tenant: str, amounts: Amounts, times: int) -> None:
        node = self.node(queue)
        use = node.tenants.get(tenant)
        if use is None:
            use = node.tenants[tenant] = Use()
        use.change(amounts, times)
        if not use.attempts:
            del node.tenants[tenant]
        for each in node.path:
            each.use.change(amounts, times)
        self.changed.add((queue, tenant))

    def use(self, queue: str, tenant: str = "") -> Use:
        """Return what a queue holds, or what one tenant holds in that queue itself."""
        node = self.node(queue)
        return node.tenants.get(tenant) or Use() if tenant else node.use

    def held_lately(self, queue: str) -> Amounts:
        """Return about what a queue holds, also while another thread changes it."""
        node = self._nodes.get(queue)
        return node.use.held if node else NO_AMOUNTS

    # Limits.

    def hit(self, queue: str, amounts: Amounts) -> LimitHit | None:
        """Return the first limit, from a queue up to its root, that has no room for amounts; None if all have room."""
        for node in self.node(queue).path:
            for name, most in node.queue.limit.items():
                if (requested := amounts.get(name, 0)) and node.use.held.get(name, 0) + requested > most:
                    return LimitHit(node.queue.name, name, node.use.held.get(name, 0), most, requested)
        return None

    def model_hits(self, queue: str, amounts: Amounts, models: Iterable[str] = ()) -> dict[str, LimitHit]:
        """Return the GPU models whose limits have no room for a job, with the limit of each.

        Parameters
        ----------
        models
            Models that count as exhausted whatever they hold.
        """
        node, found = self.node(queue), dict[str, LimitHit]()
        if not node.model_limits:
            return found
        requested = amounts.get(GPUS, 0)
        exhausted = {model_resource(model) for model in models}
        for each in node.path:
            for name, most in each.queue.limit.items():
                held = each.use.held.get(name, 0)
                if name.startswith(MODEL_PREFIX) and (held + max(requested, 1) > most or name in exhausted):
                    model = name.removeprefix(MODEL_PREFIX)
                    found.setdefault(model, LimitHit(each.queue.name, name, held, most, requested))
        return found
