"""Distance of shares from weighted max-min shares over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeVar

from seaway.domain.amounts import Amounts
from seaway.domain.queues import Queue, children_of
from seaway.scheduling.queueing.lanes import LaneName
from seaway.scheduling.queueing.tree import QueueNode, QueueTree

Sharer = TypeVar("Sharer")


class ShareErrors:
    """Mean distance of the shares of tenants in their queues from weighted max-min shares.

    The distance at a moment is the sum of all amounts beyond fair shares, divided by the sum of the fair shares.
    """

    def __init__(self, tree: QueueTree, queues: Sequence[Queue], resource: str, step_s: int) -> None:
        self._tree = tree
        self._children = children_of(queues)
        self._waiting: defaultdict[LaneName, int] = defaultdict(int)
        self._resource = resource
        self._step_s = step_s
        self._last: tuple[int, float] | None = None
        self._total = self._span_s = 0.0

    def wait(self, lane: LaneName, requested: Amounts, times: int = 1) -> None:
        """Count a job that waits (`times` is 1), or no longer does (-1)."""
        self._waiting[lane] += times * requested.get(self._resource, 0)
        if not self._waiting[lane]:
            del self._waiting[lane]

    def record(self, now_s: int) -> None:
        """Count the distance since the last call, and compute the present one."""
        if self._last is not None:
            if now_s < self._last[0] + self._step_s:
                return
            self._total += self._last[1] * (now_s - self._last[0])
            self._span_s += now_s - self._last[0]
        self._last = now_s, self._distance()

    def mean(self) -> float | None:
        """Return the mean distance over time."""
        return self._total / self._span_s if self._span_s else None

    def _distance(self) -> float:
        held, demands = defaultdict[LaneName, int](int), dict[LaneName, int]()
        for queue, tenant, amounts in self._tree.uses():
            held[queue, tenant] = amounts.get(self._resource, 0)
        for lane in held.keys() | self._waiting.keys():
            demands[lane] = held[lane] + self._waiting.get(lane, 0)
        fair = fair_amounts(self._tree, self._children, demands, self._resource)
        total = sum(fair.values())
        return sum(max(0.0, held[lane] - fair[lane]) for lane in demands) / total if total else 0.0


def fair_amounts(
    tree: QueueTree, children: Mapping[str, Sequence[Queue]], demands: Mapping[LaneName, int], resource: str
) -> dict[LaneName, float]:
    """Return the weighted max-min share of a resource of each lane.

    Guarantees go first, then the rest is divided by weight among those that demand more, down to tenants in queues.
    """
    by_queue: defaultdict[str, dict[LaneName, int]] = defaultdict(dict)
    for lane, amount in demands.items():
        by_queue[lane[0]][lane] = amount

    def demand_of(name: str) -> float:
        node = tree.node(name)
        own = sum(by_queue[name].values()) + sum(demand_of(each.name) for each in children.get(name, ()))
        return min(own, node.limit.get(resource, own))

    fair: dict[LaneName, float] = {}

    def divide(name: str, amount: float) -> None:
        if name and (lanes := by_queue.get(name)):
            weights = {lane: float(tree.tenant(*lane).weight) for lane in lanes}
            fair.update(_filled(amount, lanes, weights, {}))
        parts: dict[QueueNode, float] = {tree.node(each.name): demand_of(each.name) for each in children.get(name, ())}
        weights_of = {node: float(node.queue.weight) for node in parts}
        guarantees = {node: float(node.guarantee.get(resource, 0)) for node in parts}
        for node, part in _filled(amount, parts, weights_of, guarantees).items():
            divide(node.queue.name, part)

    roots = children.get("", ())
    capacity = max((tree.node(each.name).capacity.get(resource, 0) for each in roots), default=0)
    divide("", capacity)
    return fair


def _filled(
    amount: float, demands: Mapping[Sharer, float], weights: Mapping[Sharer, float], first: Mapping[Sharer, float]
) -> dict[Sharer, float]:
    """Divide an amount: first up to a guarantee, then by weight up to the demands."""
    got = {each: min(first.get(each, 0.0), demand) for each, demand in demands.items()}
    left = amount - sum(got.values())
    open_ = {each for each, demand in demands.items() if demand > got[each] and weights[each] > 0}
    while left > 1e-9 and open_:
        total = sum(weights[each] for each in open_)
        level = min((demands[each] - got[each]) / weights[each] for each in open_)
        step = min(level, left / total)
        for each in open_:
            got[each] += step * weights[each]
        left -= step * total
        open_ = {each for each in open_ if demands[each] - got[each] > 1e-9}
    return got
