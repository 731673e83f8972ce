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
    "extendClusters": "set the clusters of the queue's pool: seaway pool set NAME --cluster CLUSTER",
    "type": "a queue serves every kind of jobs",
}
HIERARCHY = ("volcano.sh/hierarchy", "volcano.sh/hierarchy-weights")
STATES = {"Open": True, "Closed": False, "Closing": False}
AFFINITY = {"nodeGroupAffinity": "use", "nodeGroupAntiAffinity": "avoid"}
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
            _add(source, name, spec, mapping(each.get("status")), found)
            annotations = mapping(metadata.get("annotations"))
            for key in HIERARCHY:
                if key in annotations:
                    found.leave(source, key, "is not read; set spec.parent, or seaway queue set NAME --parent PARENT")


def _add(source: str, name: str, spec: Fields, status: Fields, found: Found) -> None:
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
    queue.open = _is_open(source, spec.get("state") or status.get("state"), found)
    _leave_affinity(source, mapping(spec.get("affinity")), found)
    found.add(queue)
    known = (
        "parent", "weight", "priority", "capability", "deserved", "guarantee", "dequeueStrategy", "reclaimable",
        "affinity", "state",
    )  # fmt: skip
    found.leave_others(source, spec, known, REASONS)


def _is_open(source: str, state: object, found: Found) -> bool | None:
    """Return whether the queue accepts jobs; None if the state does not say it."""
    if state not in (None, "", *STATES):
        found.leave(source, "state", f"{state!r} is unknown; use {' or '.join(STATES)}")
    return STATES.get(str(state))


def _leave_affinity(source: str, affinity: Fields, found: Found) -> None:
    """Report the node groups that jobs of the queue must use or avoid, since a pool has clusters."""
    for kind, effect in AFFINITY.items():
        given = mapping(affinity.get(kind))
        for rule, groups in given.items():
            named = ", ".join(map(str, groups)) if isinstance(groups, list) else str(groups)
            if groups and rule.startswith(("required", "preferred")):
                must = "must" if rule.startswith("required") else "should"
                text = (
                    f"jobs {must} {effect} the node groups {named} in Volcano, here they run on all nodes of the pool"
                )
                found.leave(source, f"affinity.{kind}", f"{text}: set its clusters, or node labels in the jobs")
            elif groups:
                found.leave(source, f"affinity.{kind}.{rule}", "unknown field")
    found.leave_others(f"{source}: affinity", affinity, tuple(AFFINITY), {})


def _guarantee(source: str, spec: Fields, found: Found) -> dict[str, int]:
    """Return the larger of reserved and deserved amounts."""
    deserved = found.amounts(source, "deserved", spec.get("deserved"))
    reserved = found.amounts(source, "guarantee.resource", mapping(spec.get("guarantee")).get("resource"))
    if reserved:
        found.leave(source, "guarantee", "is guaranteed, but others may use it while it is idle")
    return deserved | {name: max(amount, deserved.get(name, 0)) for name, amount in reserved.items()}
