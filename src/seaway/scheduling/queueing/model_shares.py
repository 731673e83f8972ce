"""Division of the free GPUs of a pool among queues, while some waiting jobs need single GPU models."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from seaway.domain.amounts import CPU, GPU_CORES, GPU_MEMORY, GPUS, MEMORY, MODEL_PREFIX, Amounts, model_resource
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.domain.gpu_models import covered
from seaway.domain.job import Job
from seaway.scheduling.queueing.entitlements import EXHAUSTED, Entitlements, Models, level_of
from seaway.scheduling.queueing.tree import QueueNode, QueueTree
from seaway.scheduling.snapshot.encode import model_allowed
from seaway.scheduling.snapshot.snapshot import Snapshot

OTHERS = ""
"""All models that no waiting job needs alone."""

NONE: frozenset[str] = frozenset()

NO_MODEL = "-"
"""Name that no GPU model has, for jobs that may use none."""

_T = TypeVar("_T")


class Wanted(Protocol):
    """Request of jobs of a kind."""

    @property
    def models(self) -> frozenset[str]:
        """Names of allowed GPU models, case-folded; empty for all."""

    @property
    def requested(self) -> Amounts:
        """Amounts that a job holds at least."""


@dataclass(slots=True)
class PoolShares:
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
    _usable: dict[frozenset[str], Models] = field(default_factory=dict)

    def usable(self, kind: Wanted) -> Models:
        """Return the models that jobs of a kind can use."""
        known = self._usable.get(kind.models)
        if known is None:
            found = (each for each, of in self.models.items() if not kind.models or _covered(kind.models, of))
            known = self._usable[kind.models] = frozenset(found)
        return known

    def names(self, models: Iterable[str]) -> frozenset[str]:
        """Return the names of models."""
        return frozenset(one.removeprefix(MODEL_PREFIX) for each in models for one in self.models[each])

    def counts(self, kind: Wanted) -> bool:
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

    def participates(self, node: QueueNode, kind: Wanted) -> bool:
        """Report whether jobs of a kind in a queue take part in the division."""
        return node in self.entitlements.usable and self.counts(kind)

    def take(self, leaf: QueueNode, kind: Wanted) -> frozenset[str] | None:
        """Count a job as started; return the models that it leaves to other queues, None if it has to wait for them."""
        usable = self.entitlements.usable[leaf]
        sizes = {each: self.share[each] * kind.requested[GPUS] for each in self.usable(kind)}
        parts = {each: self.of_parts.get((usable, each), 0.0) for each in sorted(sizes)}
        rest = math.inf if leaf.guarantees(kind.requested) else self.of_leaves[leaf]
        fitting = [each for each, size in sizes.items() if min(parts[each], rest) >= size / 2]
        if not fitting and rest < math.inf:
            return None
        best = max(fitting or parts, key=parts.__getitem__)
        self.of_parts[usable, best] = parts[best] - sizes[best]
        self.of_leaves[leaf] -= sizes[best]
        return self.names(sizes.keys() - {best}) if fitting else NONE

    def is_below_share(self, leaf: QueueNode) -> bool:
        """Report whether a queue has less than its share."""
        return sum(self.held(leaf, past=True).values()) < self.entitlements.shares[leaf]

    def models_for_others(self, leaf: QueueNode, kind: Wanted) -> frozenset[str]:
        """Return the models that a waiting job leaves to other queues if it gets a reservation."""
        usable, models = self.entitlements.usable[leaf], self.usable(kind)
        held = [self.held(each, past=True) for each, of in self.entitlements.usable.items() if of == usable]
        parts = self.entitlements.parts
        owed = {each for each in models if sum(of[each] for of in held) < parts.get((usable, each), 0.0)}
        return self.names(models - owed) if owed else NONE

    @property
    def divides_any(self) -> bool:
        """True if a queue still gets GPUs."""
        return any(each > 0 for each in self.of_parts.values())


def _gains(has: Mapping[_T, tuple[float, float]], room: float) -> Mapping[_T, float]:
    """Return what candidates get of some room if all rise to the same level, see `level_of`."""
    level = level_of(has.values(), room)
    return {each: max(0.0, level * weight - held) if weight > 0 else 0.0 for each, (held, weight) in has.items()}


def pool_shares(
    tree: QueueTree, name: str, waiting: Mapping[QueueNode, Collection[Wanted]], snapshot: Snapshot
) -> PoolShares | None:
    """Return the entitlements in a pool; None if they do not apply.

    Parameters
    ----------
    waiting
        Kinds of the waiting jobs of each leaf of the pool, also of those without any.
    """
    capacity = tree.capacities.get(name, {})
    counts = {each: capacity[each] for each in capacity if each.startswith(MODEL_PREFIX) and capacity[each]}
    needed = _covered({model for of in waiting.values() for kind in of for model in kind.models}, counts)
    if not needed or len(counts) < 2:
        return None
    roots = list(dict.fromkeys(leaf.path[-1] for leaf in waiting))
    shares = _shares(roots[0], counts, snapshot)
    models = {each: {each: shares[each]} for each in sorted(needed)}
    if others := {each: shares[each] for each in counts if each not in needed}:
        models[OTHERS] = others
    room = {each: sum(counts[one] * share for one, share in of.items()) for each, of in models.items()}
    if sum(room.values()) > 1 + EXHAUSTED:
        return None  # dominant shares of these models do not add up
    mean = {each: room[each] / sum(counts[one] for one in of) for each, of in models.items()}
    pool = PoolShares(Entitlements({}, {}, {}), mean, models, roots)
    usable, idle = {}, {}
    for leaf, of in waiting.items():
        if each := frozenset[str]().union(*(pool.usable(kind) for kind in of if pool.counts(kind))):
            usable[leaf] = each
            continue
        held = pool.held(leaf, past=False)
        idle[leaf] = sum(held.values())
        room = {model: max(0.0, rest - held[model]) for model, rest in room.items()}
    pool.entitlements = Entitlements(usable, room, idle)
    return pool if pool.entitlements.has_few_sets else None


def _covered(models: Collection[str], resources: Iterable[str]) -> frozenset[str]:
    """Return the resources whose products some names of models cover."""
    products = {each.removeprefix(MODEL_PREFIX): each for each in resources}
    return frozenset(products[each] for each in covered(models, products))


def _shares(root: QueueNode, resources: Iterable[str], snapshot: Snapshot) -> Mapping[str, float]:
    """Return the share of the pool that a thousandth of a GPU is, by resource of its model."""
    memory_mib = _memory_mib(snapshot)
    whole = {GPUS: WHOLE_DEVICE_MILLI, GPU_CORES: WHOLE_DEVICE_MILLI}
    return {
        each: root.share_of({**whole, each: WHOLE_DEVICE_MILLI, GPU_MEMORY: memory_mib[each]}) / WHOLE_DEVICE_MILLI
        for each in resources
    }


def _memory_mib(snapshot: Snapshot) -> Mapping[str, int]:
    """Return the mean GPU memory of each model, MiB, by resource."""
    total, counts = Counter[str](), Counter[str]()
    for device in snapshot.devices:
        resource = model_resource(device.model)
        total[resource] += device.memory_mib
        counts[resource] += 1
    return Counter({each: total[each] // counts[each] for each in counts})


def without_models(job: Job, exhausted: Collection[str], snapshot: Snapshot) -> Job:
    """Return a job that may not use some GPU products, case-folded."""
    if not exhausted:
        return job
    rules = job.demand.devices
    narrowed = replace(rules, excluded=rules.excluded.union(exhausted))
    if not any(model_allowed(narrowed, model) for model in {each.model for each in snapshot.devices}):
        narrowed = replace(rules, models=frozenset({NO_MODEL}))
    return replace(job, demand=replace(job.demand, devices=narrowed))
