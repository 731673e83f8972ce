"""Queues of Volcano.

The deserved amounts are the guarantee, and the capability is the limit. Volcano's root queue has no counterpart.

References
----------
Volcano API ``scheduling.volcano.sh/v1beta1``: Queue.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from seaway.domain.queues import MAX_PRIORITY, Backfill
from seaway.wire.queue_imports.found import Fields, Found, FoundQueue, mapping, whole

GROUP = "scheduling.volcano.sh/"
ROOT = "root"

REASONS = {
    "affinity": "the policy of the queue selects nodes; add the nodes to a pool",
    "extendClusters": "set the clusters of the queue's pool: seaway pool set NAME --cluster CLUSTER",
    "type": "a queue serves every kind of jobs",
}
HIERARCHY = ("volcano.sh/hierarchy", "volcano.sh/hierarchy-weights")
STRATEGIES = {"fifo": Backfill.NONE, "traverse": Backfill.GREEDY}


def read_volcano(objects: Iterable[Fields], found: Found) -> None:
    """Add the queues of Volcano's objects."""
    for each in objects:
        metadata, spec = mapping(each.get("metadata")), mapping(each.get("spec"))
        name = str(metadata.get("name", ""))
        source = f"{each.get('kind')} {name}"
        if each.get("kind") != "Queue":
            found.leave(source, "kind", "is not a queue")
        elif name == ROOT:
            found.leave(source, "kind", "queues without a parent are roots")
        else:
            _add(source, name, spec, found)
            annotations = mapping(metadata.get("annotations"))
            for key in HIERARCHY:
                if key in annotations:
                    found.leave(source, key, "is not read; set spec.parent, or seaway queue set NAME --parent PARENT")


def _add(source: str, name: str, spec: Fields, found: Found) -> None:
    parent = str(spec.get("parent") or "")
    queue = FoundQueue(source, name, "" if parent == ROOT else parent)
    queue.weight = Fraction(whole(spec.get("weight"), 0, found, source, "weight", 1))
    queue.priority = whole(spec.get("priority"), -MAX_PRIORITY, found, source, "priority", 0)
    queue.limit = found.amounts(source, "capability", spec.get("capability"))
    queue.guarantee = _guarantee(source, spec, found)
    strategy = spec.get("dequeueStrategy")
    queue.backfill = STRATEGIES.get(str(strategy))
    if strategy is not None and queue.backfill is None:
        found.leave(source, "dequeueStrategy", f"{strategy!r} is unknown")
    if isinstance(reclaimable := spec.get("reclaimable"), bool):
        queue.preemptible = reclaimable
    found.add(queue)
    known = (
        "parent", "weight", "priority", "capability", "deserved", "guarantee", "dequeueStrategy", "reclaimable",
    )  # fmt: skip
    found.leave_others(source, spec, known, REASONS)


def _guarantee(source: str, spec: Fields, found: Found) -> dict[str, int]:
    """Return the larger of reserved and deserved amounts."""
    deserved = found.amounts(source, "deserved", spec.get("deserved"))
    reserved = found.amounts(source, "guarantee.resource", mapping(spec.get("guarantee")).get("resource"))
    if reserved:
        found.leave(source, "guarantee", "is guaranteed, but others may use it while it is idle")
    return deserved | {name: max(amount, deserved.get(name, 0)) for name, amount in reserved.items()}
