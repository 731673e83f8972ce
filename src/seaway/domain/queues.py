"""Queues, and the tree that they form.

Jobs wait in the leaves. A queue with children only divides its share among them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from seaway.domain.amounts import (
    GPUS,
    NO_AMOUNTS,
    Amounts,
    bound_of,
    bounds_of_all,
    checked,
    exceeded,
    gpus_of_models,
    require_bounds,
    require_models,
    resource_text,
)
from seaway.domain.errors import RejectedError
from seaway.domain.job import NodeRules
from seaway.domain.reasons import Reason
from seaway.domain.tenancy import DEFAULT, MAX_WEIGHT, require_name, unknown_name

ANY_KEY = "*"

MAX_DEPTH = 64
"""Maximum number of queues from a root to a leaf. Each decision costs a step for each of them."""

MAX_PRIORITY = 1_000_000

START_TIMEOUT_S = 3600
"""Default of `Queue.start_timeout_s`. Most images are pulled within it."""

GROW_COOLDOWN_S = 60
"""Default of `Queue.grow_cooldown_s`. A training that meets at a new rendezvous needs some of it."""


class Order(StrEnum):
    """Order of the waiting jobs of a queue."""

    FIFO = "fifo"
    """Submission time."""
    PRIORITY = "priority"
    """Priority, then submission time."""
    FAIR = "fair"
    """The tenant with the smallest dominant share first; its jobs by priority, then submission time."""
    SHORTEST = "shortest"
    """Expected duration, the shortest first and unknown ones last, then submission time."""


class Backfill(StrEnum):
    """Jobs that may start before an earlier job of their queue that does not fit."""

    NONE = "none"
    """No job."""
    EASY = "easy"
    """Jobs that do not delay the first job, which has a reservation."""
    CONSERVATIVE = "conservative"
    """Jobs that delay no earlier job. Each has a reservation."""
    GREEDY = "greedy"
    """Every job that fits. A large job can wait for ever."""


class Preemption(StrEnum):
    """Running jobs that a waiting job may displace by its priority."""

    NEVER = "Never"
    """None."""
    PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
    """Jobs of a lower priority."""


class Preempts(StrEnum):
    """Queues whose jobs a waiting job may displace by `Preemption`."""

    ALL = "all"
    """Its own, and others of the same or a lower priority, on the same devices and beyond their guarantees."""
    OWN = "own"
    """Its own."""


class Reclaim(StrEnum):
    """Running jobs of other queues that a waiting job may displace, whatever their priorities."""

    NEVER = "Never"
    """None."""
    GUARANTEE = "Guarantee"
    """Jobs of queues beyond their guarantee, while the queue stays within its own."""
    FAIR_SHARE = "FairShare"
    """Also jobs of queues whose share beyond their guarantee stays larger than its own is now."""


class Elastic(StrEnum):
    """Use of the replicas of elastic jobs beyond their minimum, while other jobs wait for what these hold."""

    LEND = "lend"
    """Given back to any waiting job that limits admit."""
    KEEP = "keep"
    """Given back only where preemption or reclaim lets a waiting job displace their job."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of jobs.

    Attributes
    ----------
    tenant
        Tenant whose jobs it accepts; empty for all tenants.
    pool
        Pool of clusters for its jobs; that of its parent.
    policy
        Policy that places its jobs.
    policy_options
        Options of its policy, such as ``{"level": "cluster"}``.
    shadow
        Shadow policy, whose decisions have no effect and serve for comparison; empty for none.
    open
        Whether it accepts new jobs. Jobs that already wait in it are placed even if it is closed.
    allowed_taints, allowed_node_labels
        Keys of the taints that its jobs may tolerate, and of the node labels that they may require; `ANY_KEY` for all.
    parent
        Name of the queue that it is part of; empty for a root.
    weight
        Share of what its siblings' guarantees leave; 0 for nothing beyond its guarantee.
    priority
        Queues with a higher priority are served before their siblings, beyond the guarantees of all.
    guarantee
        Amounts that it gets before any sibling gets more than its guarantee.
    limit
        Amounts that its jobs and those of its descendants never exceed together; a missing resource has no limit.
    borrowing_limit
        Amounts that it never exceeds beyond its guarantee.
    lending_limit
        Amounts of its guarantee that others may use while it does not; all of a missing resource.
    order
        Order of its jobs.
    backfill
        Jobs that may overtake.
    preemption, preempts
        Running jobs that its waiting jobs may displace by priority, and the queues of these.
    reclaim
        Running jobs of other queues that its waiting jobs may displace, whatever their priorities.
    preemptible
        Whether its jobs may be displaced, unless a job says otherwise.
    min_runtime_s
        Seconds that a job runs before it may be displaced.
    start_timeout_s
        Seconds from the placement of a job until all its replicas run, after which its devices are released in all
        clusters; 0 for no limit.
    grow_cooldown_s
        Seconds after a resize of an elastic job before it gets more replicas.
    elastic
        Whether its elastic jobs give back the replicas beyond their minimum.
    ageing_s
        Seconds of waiting that count as one point of priority, or in the order `Order.SHORTEST` halve the duration that
        counts; 0 for no ageing.
    """

    name: str
    tenant: str = ""
    pool: str = DEFAULT
    policy: str = "bestfit"
    shadow: str = ""
    open: bool = True
    description: str = ""
    allowed_taints: tuple[str, ...] = ()
    allowed_node_labels: tuple[str, ...] = ()
    parent: str = ""
    weight: int = 1
    priority: int = 0
    guarantee: Amounts = field(default_factory=lambda: NO_AMOUNTS)
    limit: Amounts = field(default_factory=lambda: NO_AMOUNTS)
    order: Order = Order.FAIR
    backfill: Backfill = Backfill.EASY
    preemption: Preemption = Preemption.NEVER
    reclaim: Reclaim = Reclaim.GUARANTEE
    preemptible: bool = True
    min_runtime_s: int = 0
    ageing_s: int = 0
    borrowing_limit: Amounts = field(default_factory=lambda: NO_AMOUNTS)
    lending_limit: Amounts = field(default_factory=lambda: NO_AMOUNTS)
    policy_options: Mapping[str, Any] = field(default_factory=dict)
    start_timeout_s: int = START_TIMEOUT_S
    grow_cooldown_s: int = GROW_COOLDOWN_S
    elastic: Elastic = Elastic.LEND
    preempts: Preempts = Preempts.ALL

    @property
    def policy_spec(self) -> str:
        """Name of its policy, followed by the options as JSON if it has some. Equal policies have equal texts."""
        options = json.dumps(self.policy_options, sort_keys=True, separators=(",", ":")) if self.policy_options else ""
        return f"{self.policy}{options}"

    def __post_init__(self) -> None:
        """Check the name and the numbers."""
        require_name("queue", self.name)
        if not 0 <= self.weight <= MAX_WEIGHT:
            raise RejectedError(Reason("not_between", value=self.weight, least=0, most=MAX_WEIGHT), where="weight")
        if abs(self.priority) > MAX_PRIORITY:
            raise RejectedError(
                Reason("not_between", value=self.priority, least=-MAX_PRIORITY, most=MAX_PRIORITY), where="priority"
            )
        require_bounds(self.guarantee, self.limit)
        for name in exceeded(checked(self.lending_limit, "lending_limit"), self.guarantee):
            raise RejectedError(
                Reason(
                    "lends_beyond_guarantee",
                    lent=resource_text(name, bound_of(self.lending_limit, name)),
                    guarantee=resource_text(name, self.guarantee[name]),
                ),
                where=f"lending_limit.{name}",
            )
        for name in self.lending_limit.keys() - self.guarantee.keys():
            raise RejectedError(Reason("lends_without_guarantee", name=name), where=f"lending_limit.{name}")
        checked(self.borrowing_limit, "borrowing_limit")

    def points(self, waited_s: float) -> int:
        """Return the whole points of priority that a job gained while it waited; 0 if the clock was set back since."""
        return int(max(0.0, waited_s) / self.ageing_s) if self.ageing_s else 0

    def forbidden(self, nodes: NodeRules) -> Iterator[RejectedError]:
        """Yield the errors of a job's requirements on nodes that the queue does not allow."""
        taints = sorted({each.key for each in nodes.tolerations} - {*self.allowed_taints})
        if taints and ANY_KEY not in self.allowed_taints:
            named = tuple(repr(key) if key else Reason("every_taint") for key in taints)
            key = taints[-1] or repr(ANY_KEY)
            said = Reason("taints_forbidden", queue=self.name, taints=named, taint=key)
            yield RejectedError(said, where="placement.tolerations")
        labels = sorted({key for key, _ in nodes.node_labels} - {*self.allowed_node_labels})
        if labels and ANY_KEY not in self.allowed_node_labels:
            yield RejectedError(
                Reason("labels_forbidden", queue=self.name, labels=tuple(map(repr, labels)), label=labels[0]),
                where="placement.node_labels",
            )


def options_text(options: Mapping[str, Any]) -> str:
    """Return the options of a policy as ``KEY=VALUE`` pairs, such as ``level=cluster`` or ``weights.price=2``."""
    pairs = []
    for name, value in sorted(options.items()):
        inner = sorted(value.items()) if isinstance(value, Mapping) else ()
        pairs += [f"{name}.{key}={each}" for key, each in inner] if inner else [f"{name}={value}"]
    return ", ".join(pairs)


def policy_text(spec: str) -> str:
    """Return a policy, as in `Queue.policy_spec`, for people, such as ``utilization (level=cluster)``."""
    name, brace, rest = spec.partition("{")
    return f"{name} ({options_text(json.loads(brace + rest))})" if brace else name


def children_of(queues: Iterable[Queue]) -> Mapping[str, Sequence[Queue]]:
    """Return the children of each queue that has some, by name; those of the empty name are the roots."""
    children: defaultdict[str, list[Queue]] = defaultdict(list)
    for queue in sorted(queues, key=lambda each: each.name):
        children[queue.parent].append(queue)
    return children


def path_of(name: str, queues: Mapping[str, Queue]) -> Iterator[Queue]:
    """Yield a queue and its ancestors, up to the root; an unknown name ends the path."""
    for _ in range(MAX_DEPTH):
        queue = queues.get(name)
        if queue is None:
            return
        yield queue
        name = queue.parent


def subtree_guarantee(name: str, queues: Mapping[str, Queue], children: Mapping[str, Sequence[Queue]]) -> Amounts:
    """Return the guarantee of a queue. For resources that it does not name, that is the sum over its children."""
    own = queues[name].guarantee
    parts = [subtree_guarantee(each.name, queues, children) for each in children.get(name, ())]
    return {**bounds_of_all(parts), **own}


def _guaranteed_gpus(queue: Queue, children: Mapping[str, Sequence[Queue]]) -> int:
    """Return the guaranteed GPUs of a queue, also those of single models that it or its descendants name."""
    if GPUS in queue.guarantee:
        return queue.guarantee[GPUS]
    below = sum(_guaranteed_gpus(each, children) for each in children.get(queue.name, ()))
    return max(below, gpus_of_models(queue.guarantee))


def check_tree(queue: Queue, others: Iterable[Queue]) -> None:
    """Check a new or changed queue against all other queues.

    Raises
    ------
    RejectedError
        If its parent is missing, has another pool or is one of its descendants, or if a queue guarantees less than its
        children do. GPUs of single models count as GPUs.
    """
    require_models(queue.guarantee, queue.limit)
    queues = {each.name: each for each in others} | {queue.name: queue}
    if queue.parent:
        _check_parent(queue, queues)
    children = children_of(queues.values())
    for child in children.get(queue.name, ()):
        if child.pool != queue.pool:
            raise RejectedError(
                Reason("child_in_other_pool", pool=queue.pool, child=child.name, other=child.pool),
                where="pool",
            )
    for each in path_of(queue.name, queues):
        _check_sums(each, queues, children, changed=queue.name)


def _check_parent(queue: Queue, queues: Mapping[str, Queue]) -> None:
    parent = queues.get(queue.parent)
    if parent is None:
        raise unknown_name("queue", queue.parent, queues, where="parent")
    above = list(path_of(queue.parent, queues))
    if queue in above:
        way = " in ".join(each.name for each in above[: above.index(queue) + 1])
        raise RejectedError(Reason("parent_cycle", name=queue.name, way=way), where="parent")
    if parent.pool != queue.pool:
        raise RejectedError(Reason("parent_in_other_pool", pool=parent.pool, other=queue.pool), where="parent")
    below = _height(queue.name, children_of(queues.values()))
    if len(above) + below > MAX_DEPTH:
        raise RejectedError(Reason("tree_too_deep", count=len(above) + below, most=MAX_DEPTH), where="parent")


def _height(name: str, children: Mapping[str, Sequence[Queue]]) -> int:
    return 1 + max((_height(each.name, children) for each in children.get(name, ())), default=0)


def _check_sums(
    parent: Queue, queues: Mapping[str, Queue], children: Mapping[str, Sequence[Queue]], *, changed: str
) -> None:
    """Check that a queue guarantees what its children guarantee together, and that its limit allows it."""
    below = children.get(parent.name, ())
    parts = [subtree_guarantee(each.name, queues, children) for each in below]
    total = bounds_of_all(parts, (*parent.guarantee, *parent.limit))
    named, gpus = total.get(GPUS, 0), sum(_guaranteed_gpus(each, children) for each in below)
    total[GPUS] = gpus
    for kind, bound in (("guarantee", parent.guarantee), ("limit", parent.limit)):
        for name in sorted(name for name, most in bound.items() if total.get(name, 0) > most):
            said = Reason(
                f"children_beyond_{kind}",
                queue=parent.name,
                bound=resource_text(name, bound[name]),
                together=resource_text(name, total[name]),
            )
            if name == GPUS and gpus > named:
                said = Reason("with_single_models", what=said)
            field = "guarantee" if changed != parent.name else kind
            raise RejectedError(said, where=f"{field}.{name}")
