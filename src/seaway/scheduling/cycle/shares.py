"""Division of free GPUs among queues, while some waiting jobs need single GPU models."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from functools import partial

from seaway.scheduling.cycle.jobs import Entry, Kind
from seaway.scheduling.cycle.state import State
from seaway.scheduling.queueing.entitlements import Models
from seaway.scheduling.queueing.model_shares import NONE, PoolShares, pool_shares
from seaway.scheduling.queueing.tree import QueueNode

NS_PER_S = 1_000_000_000

FRESH_S = 1.0
"""Age of entitlements after which they are computed again, seconds."""

REST = 20
"""Minimum age, as a multiple of the time that it took."""


class ModelShares:
    """Division of free GPUs among queues, in pools where waiting jobs need single GPU models.

    The order of queues decides which job is tried first. In a first pass, each queue gets its part of the free GPUs of
    each model. What is left is free for all in the second pass.

    Parameters
    ----------
    state
        What is decided about.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._pools: dict[str, PoolShares] = {}
        self._until_ns = 0
        self._version = -1
        self._left: dict[str, None] = {}  # queues with jobs that wait for the second pass
        self._second = False
        self._before: Callable[[], None] | None = None  # undoes the last `take`

    def fork(self, state: State) -> ModelShares:
        """Return the same division in a copy of the state. It is computed again."""
        twin = copy(self)
        twin._unshare(state)  # noqa: SLF001  # of this class
        return twin

    def _unshare(self, state: State) -> None:
        self._state, self._pools, self._version, self._before = state, {}, -1, None
        self._left = self._left.copy()

    def renew(self) -> None:
        """Divide the GPUs that are free now, by entitlements that are computed again if it is due."""
        tree, clock = self._state.tree, self._state.clock
        began_ns = clock.monotonic_ns()
        if self._version != tree.version or began_ns >= self._until_ns:
            pools = {tree.node(queue).queue.pool for queue, _ in self._state.waiting.needing_models()}
            self._pools = {name: pool for name in sorted(pools) if (pool := self._pool(name))}
            self._version = tree.version
            took_s = (clock.monotonic_ns() - began_ns) / NS_PER_S
            self._until_ns = began_ns + int(max(FRESH_S, REST * took_s) * NS_PER_S)
        for pool in self._pools.values() if not self._second else ():
            pool.divide()

    @property
    def divides(self) -> bool:
        """True in the first pass, in which some jobs may have to wait."""
        return not self._second and bool(self._pools)

    def advance(self) -> None:
        """Begin the second pass once all free GPUs are divided."""
        if self.divides and not any(pool.divides_any for pool in self._pools.values()):
            self._second = True
            self._try_rest()

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

    def defer(self, entries: Iterable[Entry]) -> None:
        """Let jobs wait for the second pass."""
        self._left.update((entry.queue, None) for entry in entries)

    def take(self, entry: Entry) -> frozenset[str] | None:
        """Count a job as started; return the models that it leaves to other queues, None if it has to wait for them."""
        self._before = None
        if self._second or (known := self._of(entry)) is None:
            return NONE
        pool, leaf = known
        self._before = partial(_restore, pool, leaf, {**pool.of_parts}, pool.of_leaves[leaf])
        left = pool.take(leaf, entry.kind)
        if left is None:
            self.defer([entry])
        return left

    def give_back(self) -> None:
        """Undo the last `take`, since the job did not start."""
        if self._before and self.divides:
            self._before()

    def is_below_share(self, entry: Entry) -> bool:
        """Report whether the queue of a job has less than its share."""
        if (known := self._of(entry)) is None:
            return True
        pool, leaf = known
        return pool.is_below_share(leaf)

    def models_for_others(self, entry: Entry) -> frozenset[str]:
        """Return the models that a waiting job leaves to other queues if it gets a reservation."""
        if (known := self._of(entry)) is None:
            return NONE
        pool, leaf = known
        return pool.models_for_others(leaf, entry.kind)

    def _of(self, entry: Entry) -> tuple[PoolShares, QueueNode] | None:
        """Return the pool and queue of a job; None if it takes no part in the division."""
        if not self._pools:
            return None
        node = self._state.tree.node(entry.queue)
        pool = self._pools.get(node.queue.pool)
        return (pool, node) if pool and pool.participates(node, entry.kind) else None

    def _pool(self, name: str) -> PoolShares | None:
        """Return the entitlements in a pool; None if they do not apply."""
        tree = self._state.tree
        nodes = [node for node in map(tree.node, self._state.queues) if node.queue.pool == name]
        kinds: dict[QueueNode, list[Kind]] = {node: [] for node in nodes}
        for above in {node.parent for node in nodes if node.parent}:
            kinds.pop(above, None)
        for queue, kind in self._state.waiting.open_kinds():
            if (node := tree.node(queue)) in kinds:
                kinds[node].append(kind)
        return pool_shares(tree, name, kinds, self._state.fleet.snapshot)


def _restore(pool: PoolShares, leaf: QueueNode, of_parts: dict[tuple[Models, str], float], of_leaf: float) -> None:
    """Undo the count of a started job."""
    pool.of_parts = of_parts
    pool.of_leaves[leaf] = of_leaf
