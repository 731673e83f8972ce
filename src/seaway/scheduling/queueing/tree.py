"""The tree of queues and the quotas of tenants, with the amounts that jobs hold, limits, and shares.

Amounts of a queue include those of its descendants. Totals are updated with each change, so that a decision costs the
depth of the tree and not the number of queues.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from seaway.domain.amounts import (
    CPU,
    GPU_CORES,
    GPU_MEMORY,
    GPUS,
    JOBS,
    MEMORY,
    MODEL_PREFIX,
    NO_AMOUNTS,
    RESOURCES,
    Amounts,
    ModelWeights,
    add,
    amount_of,
    bound_of,
    counts_any,
    counts_in,
    figure_text,
    in_quotas,
    model_resource,
    resource_text,
)
from seaway.domain.queues import MAX_DEPTH, Queue, children_of, subtree_guarantee
from seaway.domain.reasons import Reason
from seaway.domain.tenancy import Quota, Tenant

Key = tuple[str, int]
"""Job ID and attempt number."""

Claim = tuple[Key, "Owner", Amounts]
"""Attempt that is not placed yet, where it counts, and the amounts that it will hold."""

GpuWeights = Mapping[str, float]
"""Weight of the GPUs of models in shares, by the resource of a name that covers them; 1 for other models."""

NO_WEIGHTS: GpuWeights = {}

NO_KINDS = frozenset[str]()

RESTART_COST_S = 60.0
"""Default cost of the restart of a displaced job, and of each of its GPUs, as seconds of work of a GPU."""

ONE = 1000
"""A GPU or a core, in thousandths."""


class Owner(NamedTuple):
    """Queue, tenant and user in which a job counts.

    Attributes
    ----------
    user
        Name of the token that submitted it; empty to ignore limits of users.
    """

    queue: str
    tenant: str
    user: str = ""


@dataclass(slots=True, eq=False)
class Use:
    """Amounts that attempts hold together.

    Attributes
    ----------
    attempts
        Number of attempts, also of those that hold nothing.
    jobs
        Number of their jobs.
    """

    held: dict[str, int] = field(default_factory=dict)
    attempts: int = 0
    jobs: int = 0

    def copy(self) -> Use:
        """Return the same amounts."""
        return Use(self.held.copy(), self.attempts, self.jobs)

    def change(self, amounts: Amounts, times: int, jobs: int, count: int = 1) -> None:
        """Add the amounts of `count` attempts (`times` is 1) or remove them (-1), and add to the number of jobs."""
        held = self.held
        for name, amount in amounts.items():  # as `add`, without a call
            if left := held.get(name, 0) + times * amount:
                held[name] = left
            else:
                held.pop(name, None)
        self.attempts += times * count
        self.jobs += jobs

    def amount(self, resource: str) -> int:
        """Return the held amount of a resource, or the number of jobs."""
        return self.jobs if resource == JOBS else amount_of(self.held, resource)


class Holder:
    """A queue, a tenant or a user, with a limit.

    Attributes
    ----------
    key
        Identity among all holders; of a queue, its name.
    label
        Name in messages, such as ``queue 'vision'``.
    limit
        Amounts that it never exceeds.
    names
        Names that identify it: ``queue``, or ``tenant`` and ``pool``, of a user also ``user``.
    use
        Amounts that its jobs hold.
    claimed
        Amounts of claims, less those of ending attempts, which become free for them. Can be negative.
    """

    __slots__ = ("claimed", "key", "label", "limit", "names", "use")

    def __init__(self, key: str, label: str, limit: Amounts, **names: str) -> None:
        self.key = key
        self.label = label
        self.limit = limit
        self.names = names
        self.use = Use()
        self.claimed: dict[str, int] = {}

    def copy(self) -> Self:
        """Return a holder of the same amounts, which change on their own."""
        twin = copy(self)
        twin.use, twin.claimed = self.use.copy(), self.claimed.copy()
        return twin


@dataclass(frozen=True, slots=True)
class LimitHit:
    """Limit that leaves no room for a job.

    Attributes
    ----------
    holder
        What has the limit: a queue of the job, its tenant or its user.
    held, limit, requested
        Amounts of the resource: held by the holder, its limit, and requested by the job.
    reserved
        Amount that is reserved for jobs that displaced others.
    """

    holder: Holder
    resource: str
    held: int
    limit: int
    requested: int
    reserved: int = 0

    @classmethod
    def of(cls, holder: Holder, resource: str, requested: int, reserved: int = 0) -> LimitHit:
        """Return the limit of a holder with its present use."""
        return cls(holder, resource, holder.use.amount(resource), holder.limit[resource], requested, reserved)

    @property
    def message(self) -> str:
        """The limit as a clause, such as ``queue 'vision' holds 16 of its limit of 16 gpus``."""
        figures = {
            "holder": self.holder.label,
            "held": figure_text(self.resource, self.held),
            "limit": resource_text(self.resource, self.limit),
        }
        code = "limit_full"
        if self.held < self.limit:
            code, figures["requested"] = "limit_small", figure_text(self.resource, self.requested)
        if self.reserved:
            code, figures["reserved"] = f"{code}_claimed", figure_text(self.resource, self.reserved)
        return Reason(code, **figures)


def kind_of(resource: str) -> str:
    """Return the kind of a resource. The GPUs of a model, and memory and cores of GPUs, are of the kind of GPUs."""
    return GPUS if resource in (GPU_CORES, GPU_MEMORY) or resource.startswith(MODEL_PREFIX) else resource


def covered_kinds(guarantee: Amounts, held: Amounts, requested: Amounts) -> frozenset[str]:
    """Return the kinds of resources of a job that a guarantee names, and for which it has room."""
    named, full = set[str](), set[str]()
    for name, most in guarantee.items():
        if counts_any(requested, name):
            named.add(kind := kind_of(name))
            if amount_of(held, name) + amount_of(requested, name) > most:
                full.add(kind)
    return frozenset(named - full)


def _covers(guarantee: Amounts, held: Amounts, requested: Amounts) -> bool:
    """Report whether a guarantee has room for a job in all that it names. A job with GPUs needs guaranteed GPUs."""
    named = has_gpus = False
    for name, most in guarantee.items():
        if counts_any(requested, name):
            named = True
            has_gpus = has_gpus or kind_of(name) == GPUS
            if amount_of(held, name) + amount_of(requested, name) > most:
                return False
    return named and (has_gpus or not requested.get(GPUS))


@dataclass(frozen=True, slots=True)
class TenantNode:
    """A tenant with jobs in a queue.

    Attributes
    ----------
    use
        Amounts that its jobs hold in the queue.
    weight
        Its share of a fair queue.
    guarantee
        Its guarantee in the pool of the queue.
    in_pool
        Amounts that its jobs hold in all queues of the pool; only with a guarantee.
    past
        Mean amounts that its jobs held in the queue in the past, see `seaway.scheduling.queueing.past_use`.
    """

    name: str
    use: Use
    weight: int = 1
    guarantee: Amounts = field(default_factory=lambda: NO_AMOUNTS)
    in_pool: Use = field(default_factory=Use)
    past: Amounts = field(default_factory=lambda: NO_AMOUNTS)

    def guarantees(self, requested: Amounts) -> bool:
        """Report whether its guarantee has room for a job."""
        return bool(self.guarantee) and _covers(self.guarantee, self.in_pool.held, requested)


def quota_key(pool: str, tenant: str, user: str = "") -> str:
    """Return the `Holder.key` of a tenant's quota, or of one of its users. Names of queues have no slash."""
    return f"{pool}/{tenant}/{user}"


class QueueNode(Holder):
    """A queue in the tree.

    Attributes
    ----------
    parent
        The queue that it is part of; None for a root.
    path
        The queue itself and its ancestors, up to the root.
    use
        Amounts that jobs of the queue and its descendants hold.
    tenants
        Use of each tenant with jobs in the queue itself.
    guarantee
        Its guarantee. For resources that it does not name, that is the sum over its children.
    capacity
        Amounts of the clusters of its pool.
    past
        Mean amounts that jobs of the queue and its descendants held in the past.
    guaranteed_share
        Dominant share of the guarantee.
    """

    __slots__ = (
        "_gpu_weights",
        "_shares",
        "capacity",
        "guarantee",
        "guaranteed_share",
        "parent",
        "past",
        "path",
        "queue",
        "tenants",
    )

    def __init__(
        self, queue: Queue, above: QueueNode | None, guarantee: Amounts, capacity: Amounts, gpu_weights: ModelWeights
    ) -> None:
        super().__init__(
            queue.name, Reason("queue", queue=queue.name), _effective_limit(queue, guarantee), queue=queue.name
        )
        self.queue = queue
        self.parent = above
        self.path: tuple[QueueNode, ...] = (self, *(above.path if above else ()))
        self.tenants: dict[str, Use] = {}
        self.guarantee = guarantee
        self.capacity = capacity
        self.past: dict[str, int] = {}
        self._gpu_weights = gpu_weights
        named = {name: guarantee[name] / most for name in guarantee if (most := amount_of(capacity, name))}
        weighed, models = self._weighed(capacity), {name: guarantee[name] for name in named if MODEL_PREFIX in name}
        if models and weighed.get(GPUS):  # GPUs of a model are GPUs
            of_models = self._weighed({**models, GPUS: sum(models.values())})[GPUS] / weighed[GPUS]
            named[GPUS] = max(named.get(GPUS, 0.0), of_models)
        of_gpus = max((named[name] for name in RESOURCES if name in named and kind_of(name) == GPUS), default=0.0)
        implied = max((named[name] for name in RESOURCES if name in named), default=0.0)
        self.guaranteed_share: float = implied
        counted = (GPUS, CPU, MEMORY) if gpu_weights else RESOURCES
        shares = {name: named.get(name, of_gpus if kind_of(name) == GPUS else implied) for name in counted}
        self._shares = [(name, weighed.get(name, 0) or 1, share) for name, share in shares.items()]

    def under(self, above: QueueNode | None, tenants: dict[str, Use]) -> QueueNode:
        """Return a copy under another parent, with what its tenants hold."""
        twin = self.copy()
        twin.parent, twin.path = above, (twin, *(above.path if above else ()))
        twin.tenants = tenants
        return twin

    def share_of(self, held: Amounts) -> float:
        """Return the dominant share of amounts: the largest share of the pool's capacity over all resources.

        GPUs of single models are not resources of their own here. Their memory weighs them. If weights are set, GPUs
        count by these alone, without their memory and cores.

        References
        ----------
        Ghodsi et al., Dominant Resource Fairness, NSDI 2011, section 4.1.
        """
        weighed = self._weighed(held)
        return max([weighed.get(name, 0) / capacity for name, capacity, _ in self._shares])

    def restart_share(self, amounts: Amounts) -> float:
        """Return the share of the pool for each second that a restart costs: one GPU, and each GPU of the job.

        Cores count instead in a pool without GPUs.
        """
        name = GPUS if self.capacity.get(GPUS) else CPU
        return (ONE + amounts.get(name, 0)) / (self._weighed(self.capacity).get(name, 0) or 1)

    def _weighed(self, held: Amounts) -> Mapping[str, float]:
        """Return amounts in which GPUs count with the weight of their model."""
        if not self._gpu_weights:
            return held
        weight_of = self._gpu_weights.of
        more = sum([(weight_of(name) - 1) * amount for name, amount in held.items()])
        return {**held, GPUS: held.get(GPUS, 0) + more}

    def share_beyond_guarantee(self, more: Amounts = NO_AMOUNTS) -> float:
        """Return the dominant share of what the queue holds beyond its guarantee.

        A guarantee of a tenth of a pool's GPUs stands for a tenth of the resources that it does not name. One of cores
        or memory stands for no GPUs.

        Parameters
        ----------
        more
            Amounts to count in addition.
        """
        held = self.use.held
        if more:
            held = dict(held)
            add(held, more)
        return self.beyond_guarantee(held)

    def past_share_beyond_guarantee(self) -> float:
        """Return the dominant share of what the queue held beyond its guarantee in the past."""
        return self.beyond_guarantee(self.past) if self.past else 0.0

    def beyond_guarantee(self, held: Amounts) -> float:
        """Return the dominant share of amounts beyond the guarantee."""
        weighed = self._weighed(held) if self._gpu_weights else held
        beyond = 0.0
        for name, capacity, guaranteed in self._shares:  # this decides the order of all jobs, and calls are slow
            share = weighed.get(name, 0) / capacity - guaranteed
            if share > beyond:  # noqa: PLR1730
                beyond = share
        return beyond

    def distance_from_guarantee(self, held: Amounts) -> float:
        """Return the dominant share of amounts minus that of the guarantee; negative if all of them are less.

        Resources count that the queue holds, or that are guaranteed to it.
        """
        weighed = self._weighed(held)
        distances = [
            weighed.get(name, 0) / capacity - share
            for name, capacity, share in self._shares
            if share or weighed.get(name)
        ]
        return max(distances, default=0.0)

    def guarantees(self, requested: Amounts) -> bool:
        """Report whether the guarantee has room for a job in all that it names. A job with GPUs needs guaranteed GPUs.

        Other resources that it does not name do not matter.
        """
        return _covers(self.guarantee, self.use.held, requested)

    def entitled(self, requested: Amounts) -> frozenset[str]:
        """Return the kinds of resources of a job for which the guarantee has room."""
        return covered_kinds(self.guarantee, self.use.held, requested) if self.guarantee else NO_KINDS

    @property
    def has_guarantee_left(self) -> bool:
        """True if it holds less than its guarantee of some resource."""
        held = self.use.held
        return any(amount_of(held, name) < most for name, most in self.guarantee.items())

    def protected(self, amounts: Amounts, lower: Callable[[], Amounts]) -> frozenset[str]:
        """Return the kinds of resources of a running job that the guarantee protects from other queues.

        It protects what it would let in again, by the rule of `entitled`, so that queues within their guarantees do not
        take turns. Shares do not matter: many GPUs of a small weight can be a small share.

        Parameters
        ----------
        amounts
            Amounts that the job holds.
        lower
            Return the amounts of jobs that the guarantee protects only after this one.
        """
        if not any(counts_any(amounts, name) for name in self.guarantee):
            return NO_KINDS
        held = dict(self.use.held)
        add(held, lower(), -1)
        return covered_kinds(self.guarantee, held, dict.fromkeys(amounts, 0))  # the queue already holds them

    def share_of_guarantee(self) -> float:
        """Return the used share of the guarantee: the largest over its resources; 0 without a guarantee."""
        held = self.use.held
        return max((amount_of(held, name) / most for name, most in self.guarantee.items() if most), default=0.0)


def below_common_ancestor(one: QueueNode, other: QueueNode) -> tuple[QueueNode, QueueNode]:
    """Return the ancestors of two queues, or the queues themselves, that are siblings."""
    mine, theirs = one.path[::-1], other.path[::-1]
    at = 0
    while at + 1 < min(len(mine), len(theirs)) and mine[at] is theirs[at]:
        at += 1
    return mine[at], theirs[at]


def _effective_limit(queue: Queue, guarantee: Amounts) -> Amounts:
    """Return the limit of a queue, as far as its borrowing limit does not set a lower one."""
    if not queue.borrowing_limit:
        return queue.limit
    borrowing = {name: bound_of(guarantee, name) + amount for name, amount in queue.borrowing_limit.items()}
    return {name: min(borrowing.get(name, most), most) for name, most in {**borrowing, **queue.limit}.items()}


NOW, LATER = range(2)
"""The present, and the time when claims have their amounts and ending attempts are gone."""


def _at_both() -> tuple[Counter[str], Counter[str]]:
    return Counter(), Counter()


def _copied(at_both: tuple[Counter[str], Counter[str]]) -> tuple[Counter[str], Counter[str]]:
    now, later = at_both
    return now.copy(), later.copy()


class _Pool(Holder):
    """A pool with lenders.

    Attributes
    ----------
    reserved
        Amounts that its outermost lenders keep for their own jobs, `NOW` and `LATER`.
    """

    __slots__ = ("reserved",)

    def __init__(self, name: str) -> None:
        super().__init__(f"//{name}", Reason("pool_beside_queues", pool=name), {}, pool=name)
        self.reserved = _at_both()

    def copy(self) -> Self:
        """Return a pool with the same amounts, which change on their own."""
        twin = super().copy()
        twin.reserved = _copied(self.reserved)
        return twin


@dataclass(slots=True, eq=False)
class _Lender:
    """Queue that keeps a part of its guarantee for its own jobs.

    Attributes
    ----------
    above
        The next lender above it, or the pool.
    queue
        The queue, with what its jobs hold and claim.
    unlent
        Amounts that it keeps while its jobs hold nothing.
    unused
        Amounts that it keeps, `NOW` and `LATER`.
    reserved
        Amounts that the next lenders below it keep, `NOW` and `LATER`.
    """

    above: _Lender | _Pool
    queue: Holder
    unlent: Amounts
    unused: tuple[Counter[str], Counter[str]] = field(default_factory=_at_both)
    reserved: tuple[Counter[str], Counter[str]] = field(default_factory=_at_both)

    def under(self, above: _Lender | _Pool, queue: Holder) -> _Lender:
        """Return a copy for a copy of its queue and of what is above it."""
        return _Lender(above, queue, self.unlent, _copied(self.unused), _copied(self.reserved))

    def update(self) -> None:
        """Compute what it keeps after a change of its use or claims."""
        for resource, amount in self.unlent.items():
            now = self.queue.use.amount(resource)
            for at, used in enumerate((now, now + amount_of(self.queue.claimed, resource))):
                unused = max(0, amount - used)
                self.above.reserved[at][resource] += unused - self.unused[at][resource]
                self.unused[at][resource] = unused


@dataclass(frozen=True, slots=True)
class _Holders:
    """Quotas and limits of the jobs of an owner.

    Attributes
    ----------
    quotas
        Tenant and user, as far as they have a quota in the pool.
    limits
        Quotas and queues with a limit: the tenant and the user, then from the queue to the root.
    model_limits
        Those that limit single models.
    pool
        The pool, if it has lenders.
    lenders
        Lenders on the path from the queue to the root.
    """

    quotas: tuple[Holder, ...]
    limits: tuple[Holder, ...]
    model_limits: tuple[Holder, ...]
    pool: _Pool | None
    lenders: tuple[_Lender, ...]


class QueueTree:
    """The queues and the quotas of tenants, and the amounts that attempts hold in them.

    An attempt counts in the queue that it was placed in, even if that queue no longer exists. A job with two attempts,
    one of which is being removed, counts once as a job.

    Attributes
    ----------
    version
        Counter of changes of queues, tenants and capacities. Nodes of earlier versions are outdated.
    past_version
        Counter of changes of the past use.
    restart_cost_s
        Cost of the restart of a displaced job, and of each of its GPUs, as seconds of work of a GPU.
    fell
        Keys of holders whose use fell, or whose limit may have changed. A reader clears it.
    """

    def __init__(
        self,
        queues: Iterable[Queue] = (),
        capacities: Mapping[str, Amounts] | None = None,
        tenants: Iterable[Tenant] = (),
        gpu_weights: GpuWeights = NO_WEIGHTS,
        restart_cost_s: float = RESTART_COST_S,
    ) -> None:
        self.version = 0
        self.past_version = 0
        self.gpu_weights = gpu_weights
        self._model_weights = ModelWeights(gpu_weights)
        self._models: frozenset[str] = frozenset()  # resources of the products of all pools
        self.restart_cost_s = restart_cost_s
        self.fell: set[str] = set()
        self._watches: list[set[tuple[str, str]]] = []
        self._queues = {queue.name: queue for queue in queues}
        self._tenants = {tenant.name: tenant for tenant in tenants}
        self._capacities: Mapping[str, Amounts] = capacities or {}
        self._held: dict[Key, tuple[Owner, Amounts]] = {}
        self._by_job: dict[str, tuple[Key, ...]] = {}
        self._claims: dict[str, Claim] = {}  # by job
        self._ending: set[Key] = set()
        self._uses: dict[str, dict[str, Use]] = defaultdict(dict)  # by queue and tenant
        self._nodes: dict[str, QueueNode] = {}
        self._quotas: dict[str, Holder] = {}
        self._holders: dict[Owner, _Holders] = {}
        self._lenders: dict[str, _Lender] = {}  # by queue
        self._pools: dict[str, _Pool] = {}
        self._past: Mapping[tuple[str, str], Amounts] = {}  # by queue and tenant
        self._built = -1
        self._find_models()

    def fork(self) -> QueueTree:
        """Return a tree with the same queues, quotas, amounts and claims, which changes on its own.

        It takes a time that grows with the number of queues, not with that of attempts.
        """
        self._build()
        twin = copy(self)
        twin._unshare()  # noqa: SLF001  # of this class
        return twin

    def _unshare(self) -> None:
        """Copy all that changes, after a shallow copy."""
        nodes, lenders, uses = self._nodes, self._lenders, self._uses
        self.fell, self._watches, self._holders = self.fell.copy(), [], {}
        self._held, self._by_job = self._held.copy(), self._by_job.copy()
        self._claims, self._ending = self._claims.copy(), self._ending.copy()
        self._uses, self._nodes, self._lenders = defaultdict(dict), {}, {}
        for queue, tenants in uses.items():
            self._uses[queue] = {tenant: use.copy() for tenant, use in tenants.items()}
        for name, node in nodes.items():  # parents first
            above = self._nodes[node.parent.key] if node.parent else None
            self._nodes[name] = node.under(above, self._uses[name])
        self._quotas = {key: each.copy() for key, each in self._quotas.items()}
        self._pools = {name: each.copy() for name, each in self._pools.items()}
        for name, lender in lenders.items():
            over = lender.above
            over = self._lenders[over.queue.key] if isinstance(over, _Lender) else self._pools[over.names["pool"]]
            self._lenders[name] = lender.under(over, self._nodes[name])

    # Queues and tenants.

    def set_queues(self, queues: Iterable[Queue], tenants: Iterable[Tenant]) -> None:
        """Replace the queues and tenants."""
        self._queues = {queue.name: queue for queue in queues}
        self._tenants = {tenant.name: tenant for tenant in tenants}
        self.version += 1

    def set_capacities(self, capacities: Mapping[str, Amounts]) -> None:
        """Set the capacity of each pool."""
        if capacities != self._capacities:
            self._capacities = capacities
            self.version += 1
            self._find_models()

    def products(self, models: Iterable[str]) -> frozenset[str]:
        """Return the products of all pools that names of models cover, case-folded; a name that covers none stays."""
        found = set[str]()
        for model in models:
            resource = model_resource(model)
            known = [name for name in self._models if counts_in(name, resource)]
            found.update(name.removeprefix(MODEL_PREFIX) for name in known or [resource])
        return frozenset(found)

    def has_model(self, resource: str) -> bool:
        """Report whether a pool has GPUs that count under the name of a model, given by its resource."""
        return any(counts_in(name, resource) for name in self._models)

    def _find_models(self) -> None:
        self._models = frozenset(name for each in self._capacities.values() for name in each if MODEL_PREFIX in name)

    @property
    def capacities(self) -> Mapping[str, Amounts]:
        """Amounts of the clusters of each pool."""
        return self._capacities

    def node(self, name: str) -> QueueNode:
        """Return a queue. A queue that does not exist is a root without guarantee and limit."""
        if self._built != self.version:
            self._build()
        node = self._nodes.get(name)
        if node is None:
            queue = self._queues.get(name) or Queue(name)
            node = self._nodes[name] = QueueNode(queue, None, NO_AMOUNTS, NO_AMOUNTS, ModelWeights(NO_WEIGHTS))
            self._sum(node)
        return node

    def tenant(self, queue: str, tenant: str) -> TenantNode:
        """Return a tenant in a queue."""
        node = self.node(queue)
        use, known = node.tenants.get(tenant) or Use(), self._tenants.get(tenant)
        past = self._past.get((queue, tenant), NO_AMOUNTS)
        if known is None:
            return TenantNode(tenant, use, past=past)
        quota = known.quotas.get(node.queue.pool)
        if quota is None or not quota.guarantee:
            return TenantNode(tenant, use, known.weight, past=past)
        in_pool = self._quota(known, quota, node.queue.pool).use
        return TenantNode(tenant, use, known.weight, quota.guarantee, in_pool, past)

    def watch(self) -> set[tuple[str, str]]:
        """Return a set that gets each queue and tenant whose use changes; an empty queue stands for all of the tenant.

        A reader clears it.
        """
        changed: set[tuple[str, str]] = set()
        self._watches.append(changed)
        return changed

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """Add nothing to the sets of `watch` for changes that are undone at the end."""
        watches, self._watches = self._watches, []
        try:
            yield
        finally:
            self._watches = watches

    def loss(self, queue: str, amounts: Amounts, lost_s: float) -> float:
        """Return the loss if a running job of a queue is displaced: its work of some seconds, and its restart.

        Both are shares of the pool times seconds: the work counts by the dominant share, and `restart_cost_s` once for
        the job and once for each of its GPUs.
        """
        node = self.node(queue)
        work = node.share_of(amounts) * lost_s if lost_s else 0.0
        return work + node.restart_share(amounts) * self.restart_cost_s

    # Past use.

    @property
    def past(self) -> Mapping[tuple[str, str], Amounts]:
        """Mean amounts that the jobs of each queue and tenant held in the past."""
        return self._past

    def set_past(self, past: Mapping[tuple[str, str], Amounts]) -> None:
        """Set the mean amounts that the jobs of each queue and tenant held in the past."""
        self._past = past
        self.past_version += 1
        self._build()
        self._sum_past()

    def past_tenants(self, queue: str) -> Iterator[str]:
        """Yield the tenants with past use in a queue."""
        return (tenant for name, tenant in self._past if name == queue)

    def _sum_past(self) -> None:
        for node in self._nodes.values():
            node.past = {}
        for (queue, _), amounts in self._past.items():
            for node in self.node(queue).path:
                add(node.past, amounts)

    def uses(self) -> Iterator[tuple[str, str, Amounts]]:
        """Yield the amounts that the jobs of each queue and tenant hold."""
        for queue, tenants in self._uses.items():
            for tenant, use in tenants.items():
                yield queue, tenant, use.held

    def limits_users(self, queue: str, tenant: str) -> bool:
        """Report whether the users of a tenant have limits of their own in the pool of a queue."""
        known, of = self._tenants.get(tenant), self._queues.get(queue)
        quota = known.quotas.get(of.pool) if known and of else None
        return bool(quota and quota.user_limit)

    def _build(self) -> None:
        """Create the nodes again after a change of queues, tenants or capacities."""
        if self._built == self.version:
            return
        self._built = self.version
        self.fell.update(self._quotas)
        self._nodes = {}
        self._quotas = {}
        self._holders = {}
        self._lenders = {}
        self._pools = {}
        children = children_of(self._queues.values())
        for root in children.get("", ()):
            self._add(root, None, children)
        for node in self._nodes.values():
            self._sum(node)
        self._add_lenders()
        self._sum_past()
        limited = {tenant.name for tenant in self._tenants.values() if tenant.quotas}
        for keys in self._by_job.values():
            counted: set[Holder] = set()
            if len(keys) > 1:  # `_sum` counted the job for each queue and tenant of its attempts
                for queue, _ in {self._held[key][0][:2] for key in keys}:
                    for node in self.node(queue).path:
                        node.use.jobs -= int(node in counted)
                        counted.add(node)
            for owner, amounts in (self._held[key] for key in keys) if limited else ():
                for each in self._holders_of(owner).quotas if owner.tenant in limited else ():
                    each.use.change(amounts, 1, int(each not in counted))
                    counted.add(each)
        self._sum_claimed()
        self.fell.update(self._nodes, self._quotas)

    def _add_lenders(self) -> None:
        """Create the lenders, parents first, and their pools."""
        for name, node in self._nodes.items():
            if lent := node.queue.lending_limit:
                unlent = {each: node.guarantee[each] - lent[each] for each in lent if each in node.guarantee}
                pool = self._pools.setdefault(node.queue.pool, _Pool(node.queue.pool))
                above = (self._lenders[each.key] for each in node.path[1:] if each.key in self._lenders)
                lender = self._lenders[name] = _Lender(next(above, pool), node, unlent)
                lender.update()
        for name, _, held in self.uses() if self._pools else ():  # also of queues that no longer exist
            if total := self._pools.get((self._queues.get(name) or Queue(name)).pool):
                add(total.use.held, held)

    def _add(self, queue: Queue, above: QueueNode | None, children: Mapping[str, Sequence[Queue]]) -> None:
        guarantee = subtree_guarantee(queue.name, self._queues, children)
        capacity = self._capacities.get(queue.pool, NO_AMOUNTS)
        node = QueueNode(queue, above, guarantee, capacity, self._model_weights)
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
                each.use.jobs += use.jobs

    def _holders_of(self, owner: Owner) -> _Holders:
        """Return what counts and limits the jobs of an owner."""
        self._build()
        known = self._holders.get(owner)
        if known is None:
            node, tenant = self.node(owner.queue), self._tenants.get(owner.tenant)
            quota = tenant.quotas.get(node.queue.pool) if tenant else None
            quotas: list[Holder] = []
            if tenant and quota and (quota.limit or quota.guarantee):
                quotas.append(self._quota(tenant, quota, node.queue.pool))
            if tenant and quota and quota.user_limit and owner.user:
                quotas.append(self._quota(tenant, quota, node.queue.pool, owner.user))
            limits = tuple(each for each in (*quotas, *node.path) if each.limit)
            by_model = tuple(each for each in limits if any(name.startswith(MODEL_PREFIX) for name in each.limit))
            lenders = tuple(self._lenders[each.key] for each in node.path if each.key in self._lenders)
            pool = self._pools.get(node.queue.pool)
            known = self._holders[owner] = _Holders(tuple(quotas), limits, by_model, pool, lenders)
        return known

    def _quota(self, tenant: Tenant, quota: Quota, pool: str, user: str = "") -> Holder:
        """Return the holder of a tenant's quota, or of one of its users."""
        key = quota_key(pool, tenant.name, user)
        if (known := self._quotas.get(key)) is None:
            limit = quota.user_limit if user else quota.limit
            names = {"tenant": tenant.name, "pool": pool} | ({"user": user} if user else {})
            label = Reason("user_in_pool" if user else "tenant_in_pool", **names)
            known = self._quotas[key] = Holder(key, label, limit, **names)
        return known

    # Amounts.

    def hold(self, key: Key, owner: Owner, amounts: Amounts) -> None:
        """Set the amounts of an attempt, instead of earlier ones."""
        self._holders_of(owner)  # before the attempt counts
        if self._held.get(key) == (owner, amounts):
            return
        self.withdraw(key)
        keys = self._by_job.get(key[0], ())
        self._change(owner, amounts, 1, keys)
        self._held[key] = (owner, amounts)
        self._by_job[key[0]] = (*keys, key)
        self._count_claimed(key, -1)

    def hold_all(self, attempts: Iterable[tuple[Key, Owner, Amounts]]) -> None:
        """Set the amounts of many attempts in a tree that nothing holds or claims yet.

        The attempts of an owner are added at once. This is several times as fast as `hold` for each.
        """
        groups: defaultdict[Owner, list[tuple[Key, Amounts]]] = defaultdict(list)
        for key, owner, amounts in attempts:
            groups[owner].append((key, amounts))
        others: list[tuple[Key, Owner, Amounts]] = []
        for owner, group in groups.items():
            total: dict[str, int] = {}
            before = len(self._held)
            for key, amounts in group:
                if key[0] in self._by_job:
                    others.append((key, owner, amounts))  # it counts once
                    continue
                self._by_job[key[0]] = (key,)
                self._held[key] = owner, amounts
                for name, amount in amounts.items():  # as `add`, without a call
                    total[name] = total.get(name, 0) + amount
            self._change(owner, total, 1, (), len(self._held) - before)
        for each in others:
            self.hold(*each)

    def release(self, key: Key) -> None:
        """Remove the amounts of an attempt, if it holds any."""
        if owner := self.withdraw(key):
            self.note_fall(owner)
        self._ending.discard(key)

    def note_fall(self, owner: Owner) -> None:
        """Record that the use of an owner's queues and quotas fell."""
        self.fell.update(each.key for each in self.node(owner.queue).path)
        holders = self._holders_of(owner)
        self.fell.update(each.key for each in holders.quotas)
        if holders.pool:
            self.fell.add(holders.pool.key)

    def withdraw(self, key: Key) -> Owner | None:
        """Remove the amounts of an attempt that is about to hold others; return its owner, or None without any."""
        if key not in self._held:
            return None
        self._build()
        self._count_claimed(key, 1)
        owner, amounts = self._held.pop(key)
        keys = tuple(each for each in self._by_job[key[0]] if each != key)
        self._change(owner, amounts, -1, keys)
        if keys:
            self._by_job[key[0]] = keys
        else:
            del self._by_job[key[0]]
        return owner

    # Claims.

    def claim(self, key: Key, owner: Owner, amounts: Amounts) -> None:
        """Reserve room under all limits for an attempt that is not placed yet, instead of an earlier one of its job.

        Until it holds amounts itself, other jobs may only use what it leaves once all ending attempts are gone.
        """
        claim = key, owner, {**amounts, JOBS: 1}
        if self._claims.get(key[0]) == claim:
            return
        self.drop_claim(key[0])
        self._claims[key[0]] = claim
        if key not in self._held:
            self._count_claimed(key, 1)

    @property
    def claimants(self) -> Collection[str]:
        """IDs of the jobs for which room is reserved."""
        return self._claims.keys()

    def drop_claim(self, job: str) -> Claim | None:
        """Release the room that is reserved for a job, and return the claim, if any."""
        self._build()
        if job not in self._claims:
            return None
        key, owner, _ = self._claims[job]
        if key not in self._held:
            self._count_claimed(key, -1)
        self.note_fall(owner)
        return self._claims.pop(job)

    def end(self, key: Key) -> None:
        """Record that an attempt is ending, so that claims may use what it still holds."""
        if key in self._held and key not in self._ending:
            self._build()
            self._ending.add(key)
            self._count_claimed(key, -1)

    def _sum_claimed(self) -> None:
        """Compute `Holder.claimed` for new holders."""
        for key in self._ending & self._held.keys():
            self._count_claimed(key, -1)
        for key in {key for key, _, _ in self._claims.values()} - self._held.keys():
            self._count_claimed(key, 1)

    def _count_claimed(self, key: Key, times: int) -> None:
        """Add to `Holder.claimed` what an attempt claims, or holds while it is ending, `times` as much."""
        claim = self._claims.get(key[0])
        if claim and claim[0] == key:
            _, owner, amounts = claim
        elif key in self._ending:
            owner, amounts = self._held[key]
            amounts = {**amounts, JOBS: 1}
        else:
            return
        holders = self._holders_of(owner)
        for holder in (*self.node(owner.queue).path, *holders.quotas, *filter(None, (holders.pool,))):
            add(holder.claimed, amounts, times)
        for lender in holders.lenders:
            lender.update()

    def _reserved(self, holder: Holder, resource: str, job: str) -> int:
        """Return the amount of a resource that is reserved for other jobs than `job`."""
        return max(0, self._claimed(holder, resource, job))

    def _claimed(self, holder: Holder, resource: str, job: str) -> int:
        """Return by how much the amount of a resource will change without `job`, see `Holder.claimed`."""
        claimed = amount_of(holder.claimed, resource)
        if job in self._claims and self._claims[job][0] not in self._held:
            claimed -= amount_of(self._claims[job][2], resource)
        return claimed

    def _change(self, owner: Owner, amounts: Amounts, times: int, others: Sequence[Key], count: int = 1) -> None:
        """Add the amounts of `count` attempts, `times` as much. A job counts where none of its other attempts does."""
        queue, tenant, _ = owner
        node = self.node(queue)
        use = node.tenants.get(tenant)
        if use is None:
            use = node.tenants[tenant] = Use()
        counted = self._counting(others) if others else ()
        counts = not any(self._held[other][0][:2] == (queue, tenant) for other in others)
        use.change(amounts, times, times * count if counts else 0, count)
        if not use.attempts:
            del node.tenants[tenant]
        holders = self._holders_of(owner)
        for holder in (*node.path, *holders.quotas):
            holder.use.change(amounts, times, 0 if holder in counted else times * count, count)
        if holders.pool:
            add(holders.pool.use.held, amounts, times)
        for lender in holders.lenders:
            lender.update()
        for changed in self._watches:
            changed.add((queue, tenant))
            if holders.quotas:
                changed.add(("", tenant))  # its guarantee covers all queues of the pool

    def _counting(self, attempts: Iterable[Key]) -> set[Holder]:
        """Return the queues and quotas in which attempts count."""
        found: set[Holder] = set()
        for owner in (self._held[key][0] for key in attempts):
            found.update(self.node(owner.queue).path, self._holders_of(owner).quotas)
        return found

    def use(self, queue: str, tenant: str = "") -> Use:
        """Return what a queue holds, or what one tenant holds in that queue itself."""
        node = self.node(queue)
        return node.tenants.get(tenant) or Use() if tenant else node.use

    def holder(self, key: str) -> Holder | None:
        """Return a queue or quota by `Holder.key`; None if it does not exist."""
        self._build()
        return self._nodes.get(key) or self._quotas.get(key)

    def held_by_users(self, pool: str, tenant: str) -> dict[str, Use]:
        """Return what the jobs of each user of a tenant hold in a pool, also of users without a limit."""
        found: defaultdict[str, Use] = defaultdict(Use)
        seen: set[tuple[str, str]] = set()
        for (job, _), (owner, amounts) in self._held.items():
            if owner.tenant == tenant and self.node(owner.queue).queue.pool == pool:
                found[owner.user].change(amounts, 1, int((owner.user, job) not in seen))
                seen.add((owner.user, job))
        return dict(found)

    def use_lately(self, key: str) -> Use:
        """Return about what a queue or quota holds, also while another thread changes it."""
        holder = self._nodes.get(key) or self._quotas.get(key)
        return holder.use if holder else Use()

    # Limits.

    def limits_of(self, owner: Owner) -> Sequence[Holder]:
        """Return the queues and quotas that limit the jobs of an owner."""
        return self._holders_of(owner).limits

    def hit(self, owner: Owner, amounts: Amounts, job: str = "") -> LimitHit | None:
        """Return the first limit without room for amounts; None if all have room.

        The limits are those of the tenant and the user, then those of the queue and its ancestors. So reasons name the
        limit that displaced jobs of others could not mend.

        Parameters
        ----------
        job
            Job ID. A job that still holds amounts of an earlier attempt already counts as a job.
        """
        counted = self._counting(self._by_job[job]) if job in self._by_job else ()
        for holder in self._holders_of(owner).limits:
            for name, most in holder.limit.items():
                requested = amount_of(amounts, name) if name != JOBS else int(holder not in counted)
                reserved = self._reserved(holder, name, job) if holder.claimed else 0
                if requested and holder.use.amount(name) + reserved + requested > most:
                    return LimitHit.of(holder, name, requested, reserved)
        return self._lender_limit_hit(owner, amounts, job)

    def _lender_limit_hit(self, owner: Owner, amounts: Amounts, job: str) -> LimitHit | None:
        """Return the resource of which the pool has too little beside what queues keep for their own jobs."""
        holders = self._holders_of(owner)
        pool = holders.pool
        if pool is None:
            return None
        capacity = self.node(owner.queue).capacity
        for resource, requested in in_quotas(amounts, pool.reserved[LATER]).items():
            most = amount_of(capacity, resource)
            for at in (NOW, LATER) if self._claims else (NOW,):
                inside = sum(each.reserved[at][resource] - each.unused[at][resource] for each in holders.lenders)
                reserved, held = pool.reserved[at][resource] + inside, pool.use.amount(resource)
                claimed = self._claimed(pool, resource, job) if at == LATER else 0
                if reserved and most and held + claimed + requested > most - reserved:
                    return LimitHit(pool, resource, held, most - reserved, requested, max(0, claimed))
        return None

    @property
    def keeps_any(self) -> bool:
        """True if a queue keeps a part of its guarantee for its own jobs."""
        self._build()
        return bool(self._pools)

    def beyond_lending(self, queue: str, requested: Amounts, capacity: Amounts) -> LimitHit | None:
        """Return what leaves no room for a job of a queue even if nothing ran, since other queues keep their own.

        None if there is room.

        Parameters
        ----------
        capacity
            Amounts of all clusters of the pool.
        """
        node = self.node(queue)
        pool = self._pools.get(node.queue.pool)
        if pool is None:
            return None
        path, lenders = {each.key for each in node.path}, list(self._lenders.values())
        for name in requested.keys() & capacity.keys():
            kept = 0
            for each in lenders:
                outer = each.above is pool or (isinstance(each.above, _Lender) and each.above.queue.key in path)
                kept += each.unlent.get(name, 0) * (outer - (each.queue.key in path))
            if kept and requested[name] > capacity[name] - kept:
                return LimitHit(pool, name, 0, capacity[name] - kept, requested[name], kept)
        return None

    def model_hits(
        self, owner: Owner, amounts: Amounts, models: Iterable[str] = (), job: str = ""
    ) -> dict[str, LimitHit]:
        """Return the GPU products whose limits have no room for a job, case-folded, with the limit of each.

        The name in a limit is one of them, so that it also counts for a job that names the model alike.

        Parameters
        ----------
        models
            Names in limits that count as exhausted whatever they hold.
        job
            Job ID. What is reserved for a job has room for it.
        """
        found = dict[str, LimitHit]()
        holders = self._holders_of(owner).model_limits
        if not holders:
            return found
        requested = amounts.get(GPUS, 0)
        exhausted = {model_resource(model) for model in models}
        for each in holders:
            for name, most in each.limit.items():
                if not name.startswith(MODEL_PREFIX):
                    continue
                reserved = self._reserved(each, name, job) if each.claimed else 0
                if each.use.amount(name) + reserved + max(requested, 1) > most or name in exhausted:
                    hit = LimitHit.of(each, name, requested, reserved)
                    for one in (name, *(one for one in self._models if counts_in(one, name))):
                        found.setdefault(one.removeprefix(MODEL_PREFIX), hit)
        return found
