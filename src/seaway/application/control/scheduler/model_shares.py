"""Division of free GPUs among queues, while some waiting jobs need single GPU models."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from seaway.application.control.pending import Entry, Kind
from seaway.application.control.state import ControlState
from seaway.domain.amounts import CPU, GPU_CORES, GPU_MEMORY, GPUS, MEMORY, MODEL_PREFIX, model_resource
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.scheduling.queueing.entitlements import EXHAUSTED, Entitlements, Models, level_of
from seaway.scheduling.queueing.tree import QueueNode

NS_PER_S = 1_000_000_000

FRESH_S = 1.0
"""Age of entitlements after which they are computed again, seconds."""

REST = 20
"""Minimum age, as a multiple of the time that it took."""

OTHERS = ""
"""All models that no waiting job needs alone."""

NONE: frozenset[str] = frozenset()

_T = TypeVar("_T")


@dataclass(slots=True)
class _Pool:
    """A pool with entitlements, and what its free GPUs add to the shares of queues.

    Attributes
    ----------
    share
        Share of the pool that a thousandth of a GPU is, of each model; the mean of models that count together.
    models
        Resources of the models that count together, with the share of each.
    roots
        Roots of the pool.
    of_parts
        Share of each model that leaves with the same usable models still get.
    of_leaves
        Share that each leaf still gets.
    """

    entitlements: Entitlements
    share: Mapping[str, float]
    models: Mapping[str, Mapping[str, float]]
    roots: Sequence[QueueNode]
    of_parts: dict[tuple[Models, str], float] = field(default_factory=dict)
    of_leaves: dict[QueueNode, float] = field(default_factory=dict)

    def usable(self, kind: Kind) -> Models:
        """Return the models that jobs of a kind can use."""
        wanted = frozenset(map(model_resource, kind.models))
        return frozenset(each for each, of in self.models.items() if not wanted or wanted & of.keys())

    def names(self, models: Iterable[str]) -> frozenset[str]:
        """Return the names of models."""
        return frozenset(one.removeprefix(MODEL_PREFIX) for each in models for one in self.models[each])

    def counts(self, kind: Kind) -> bool:
        """Report whether GPUs are the dominant resource of jobs of a kind."""
        gpus = min((self.share[each] for each in self.usable(kind)), default=0.0) * kind.requested.get(GPUS, 0)
        return gpus > 0 and gpus >= self.roots[0].share_of(
            {name: kind.requested[name] for name in (CPU, MEMORY) if name in kind.requested}
        )

    def held(self, node: QueueNode, *, past: bool) -> dict[str, float]:
        """Return the share of the pool that a queue holds of each model, and on request held in the past."""
        amounts = (node.use.held, node.past) if past else (node.use.held,)
        return {
            each: sum(share * held.get(one, 0) for one, share in of.items() for held in amounts)
            for each, of in self.models.items()
        }

    def divide(self) -> None:
        """Divide the free GPUs, so that all rise to the same part of their entitlements."""
        found, parts = self.entitlements.shares, self.entitlements.parts
        leaves = {leaf: self.held(leaf, past=True) for leaf in self.entitlements.usable}
        of = defaultdict[Models, list[QueueNode]](list)
        for leaf, usable in self.entitlements.usable.items():
            of[usable].append(leaf)
        self.of_parts.clear()
        self.of_leaves.clear()
        used = [self.held(root, past=False) for root in self.roots]
        for each, resources in self.models.items():
            room = sum(share * self.roots[0].capacity.get(one, 0) for one, share in resources.items())
            room -= sum(held[each] for held in used)
            has = {
                key: (sum(leaves[leaf][each] for leaf in of[key[0]]), part)
                for key, part in parts.items()
                if key[1] == each
            }
            self.of_parts.update(_gains(has, max(0.0, room)))
        for usable, members in of.items():
            room = sum(self.of_parts.get((usable, each), 0.0) for each in usable)
            self.of_leaves.update(_gains({leaf: (sum(leaves[leaf].values()), found[leaf]) for leaf in members}, room))


def _gains(has: Mapping[_T, tuple[float, float]], room: float) -> Mapping[_T, float]:
    """Return what candidates get of some room if all rise to the same level, see `level_of`."""
    level = level_of(has.values(), room)
    return {each: max(0.0, level * weight - held) if weight > 0 else 0.0 for each, (held, weight) in has.items()}


class ModelShares:
    """Division of free GPUs among queues, in pools where waiting jobs need single GPU models.

    The order of queues decides which job is tried first. In a first pass, each queue gets its part of the free GPUs of
    each model. What is left is free for all in the second pass.

    Parameters
    ----------
    live
        The control-plane state.
    """

    def __init__(self, live: ControlState) -> None:
        self._state = live
        self._pools: dict[str, _Pool] = {}
        self._until_ns = 0
        self._version = -1
        self._left: dict[str, None] = {}  # queues with jobs that wait for the second pass
        self._second = False

    def renew(self) -> None:
        """Compute the entitlements, if it is due."""
        tree, clock = self._state.tree, self._state.clock
        began_ns = clock.monotonic_ns()
        if self._version == tree.version and began_ns < self._until_ns:
            return
        pools = {tree.node(queue).queue.pool for queue, _ in self._state.waiting.needing_models()}
        self._pools = {name: pool for name in sorted(pools) if (pool := self._pool(name))}
        self._version = tree.version
        took_s = (clock.monotonic_ns() - began_ns) / NS_PER_S
        self._until_ns = began_ns + int(max(FRESH_S, REST * took_s) * NS_PER_S)

    def divide(self) -> None:
        """Divide the GPUs that are free now. Without any, the second pass begins."""
        if self._second:
            return
        for pool in self._pools.values():
            pool.divide()
        if not any(each > 0 for pool in self._pools.values() for each in pool.of_parts.values()):
            self._second = True
            self._try_rest()

    @property
    def divides(self) -> bool:
        """True in the first pass, in which some jobs may have to wait."""
        return not self._second and bool(self._pools)

    def begin(self) -> None:
        """Begin the first pass."""
        self._second = False
        self._left.clear()

    def end(self) -> None:
        """End a pass after all jobs were tried. The second one follows the first one, if jobs wait for it."""
        self._second = not self._second and bool(self._left)
        self._try_rest()

    def _try_rest(self) -> None:
        for queue in self._left:
            self._state.waiting.try_queue(queue)
        self._left.clear()

    def waits(self, entry: Entry) -> bool:
        """Report whether jobs of a queue wait for the second pass."""
        return entry.queue in self._left

    def defers(self, entry: Entry) -> bool:
        """Report whether a job waits for the second pass, since its queue has its part of the free GPUs."""
        if self._second or (known := self._of(entry)) is None:
            return False
        pool, leaf = known
        least = min(pool.share[each] for each in pool.usable(entry.kind)) * entry.kind.requested[GPUS]
        if pool.of_leaves[leaf] >= least / 2 or leaf.guarantees(entry.kind.requested):
            return False
        self.defer([entry])
        return True

    def defer(self, entries: Iterable[Entry]) -> None:
        """Let jobs wait for the second pass."""
        self._left.update((entry.queue, None) for entry in entries)

    def take(self, entry: Entry) -> frozenset[str] | None:
        """Count a job as started; return the models that it leaves to other queues, None if it has to wait for them."""
        if self._second or (known := self._of(entry)) is None:
            return NONE
        pool, leaf = known
        usable = pool.entitlements.usable[leaf]
        sizes = {each: pool.share[each] * entry.kind.requested[GPUS] for each in pool.usable(entry.kind)}
        parts = {each: pool.of_parts.get((usable, each), 0.0) for each in sorted(sizes)}
        rest = math.inf if leaf.guarantees(entry.kind.requested) else pool.of_leaves[leaf]
        fitting = [each for each, size in sizes.items() if min(parts[each], rest) >= size / 2]
        if not fitting and rest < math.inf:
            self.defer([entry])
            return None
        best = max(fitting or parts, key=parts.__getitem__)
        pool.of_parts[usable, best] = parts[best] - sizes[best]
        pool.of_leaves[leaf] -= sizes[best]
        return pool.names(sizes.keys() - {best}) if fitting else NONE

    def owes(self, entry: Entry) -> bool:
        """Report whether the queue of a job has less than its share."""
        if (known := self._of(entry)) is None:
            return True
        pool, leaf = known
        return sum(pool.held(leaf, past=True).values()) < pool.entitlements.shares[leaf]

    def others_need(self, entry: Entry) -> frozenset[str]:
        """Return the models that a waiting job leaves to other queues if it gets a reservation."""
        if (known := self._of(entry)) is None:
            return NONE
        pool, leaf = known
        usable, models = pool.entitlements.usable[leaf], pool.usable(entry.kind)
        held = [pool.held(each, past=True) for each, of in pool.entitlements.usable.items() if of == usable]
        parts = pool.entitlements.parts
        owed = {each for each in models if sum(of[each] for of in held) < parts.get((usable, each), 0.0)}
        return pool.names(models - owed) if owed else NONE

    def _of(self, entry: Entry) -> tuple[_Pool, QueueNode] | None:
        """Return the pool and queue of a job; None if it takes no part in the division."""
        if not self._pools:
            return None
        node = self._state.tree.node(entry.queue)
        pool = self._pools.get(node.queue.pool)
        if pool is None or node not in pool.entitlements.usable or not pool.counts(entry.kind):
            return None
        return pool, node

    def _pool(self, name: str) -> _Pool | None:
        """Return the entitlements in a pool; None if they do not apply."""
        tree = self._state.tree
        nodes = [node for node in map(tree.node, self._state.queues) if node.queue.pool == name]
        kinds: dict[QueueNode, list[Kind]] = {node: [] for node in nodes}
        for above in {node.parent for node in nodes if node.parent}:
            kinds.pop(above, None)
        for queue, kind in self._state.waiting.open_kinds():
            if (node := tree.node(queue)) in kinds:
                kinds[node].append(kind)
        capacity = tree.capacities.get(name, {})
        counts = {each: capacity[each] for each in capacity if each.startswith(MODEL_PREFIX) and capacity[each]}
        wanted = {model_resource(model) for of in kinds.values() for kind in of for model in kind.models}
        needed = wanted & counts.keys()
        if not nodes or not needed or len(counts) < 2:
            return None
        shares = self._shares(nodes[0].path[-1], counts)
        models = {each: {each: shares[each]} for each in sorted(needed)}
        if others := {each: shares[each] for each in counts if each not in needed}:
            models[OTHERS] = others
        room = {each: sum(counts[one] * share for one, share in of.items()) for each, of in models.items()}
        if sum(room.values()) > 1 + EXHAUSTED:
            return None  # dominant shares of these models do not add up
        mean = {each: room[each] / sum(counts[one] for one in of) for each, of in models.items()}
        pool = _Pool(Entitlements({}, {}, {}), mean, models, [node for node in nodes if node.parent is None])
        usable, idle = {}, {}
        for leaf, of in kinds.items():
            if each := frozenset[str]().union(*(pool.usable(kind) for kind in of if pool.counts(kind))):
                usable[leaf] = each
                continue
            held = pool.held(leaf, past=False)
            idle[leaf] = sum(held.values())
            room = {model: max(0.0, rest - held[model]) for model, rest in room.items()}
        pool.entitlements = Entitlements(usable, room, idle)
        return pool if pool.entitlements.has_few_sets else None

    def _shares(self, root: QueueNode, resources: Iterable[str]) -> Mapping[str, float]:
        """Return the share of the pool that a thousandth of a GPU is, by resource of its model."""
        memory_mib = self._memory_mib()
        whole = {GPUS: WHOLE_DEVICE_MILLI, GPU_CORES: WHOLE_DEVICE_MILLI}
        return {
            each: root.share_of({**whole, each: WHOLE_DEVICE_MILLI, GPU_MEMORY: memory_mib[each]}) / WHOLE_DEVICE_MILLI
            for each in resources
        }

    def _memory_mib(self) -> Mapping[str, int]:
        """Return the mean GPU memory of each model, MiB, by resource."""
        total, counts = Counter[str](), Counter[str]()
        for device in self._state.fleet.snapshot.devices:
            resource = model_resource(device.model)
            total[resource] += device.memory_mib
            counts[resource] += 1
        return Counter({each: total[each] // counts[each] for each in counts})
