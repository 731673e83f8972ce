"""Queues in the form `queues: [{name, weight, maxCapacity, guaranteedCapacity, preemptionPolicy}]` with `fairShare`.

A capacity is a mapping of resources, a number of GPUs, or a percentage of the GPUs of the fleet.
"""

from __future__ import annotations

from fractions import Fraction

from seaway.domain.amounts import GPUS
from seaway.domain.errors import RejectedError
from seaway.domain.queues import Order, Preemption, Preempts, Reclaim
from seaway.domain.units import percent_milli
from seaway.wire.queue_imports.found import Fields, Found, FoundQueue, mapping, whole

KNOWN = ("name", "parent", "weight", "priority", "maxCapacity", "guaranteedCapacity", "preemptionPolicy")
POLICIES = {each.value: each for each in Preemption}
FAIR_SHARE = ("LessThanOrEqualToFinalShare", "LessThanInitialShare", Preemption.PREEMPT_LOWER_PRIORITY.value)
"""Values of `fairShare.preemptionPolicy` that displace jobs of queues with a larger share."""


def read_scheduler_queues(document: Fields, found: Found, fleet_gpus: int) -> None:
    """Add the queues of a document.

    Parameters
    ----------
    fleet_gpus
        Number of GPUs of the fleet, for percentages.
    """
    share = mapping(document.get("fairShare"))
    order = None if "enabled" not in share else Order.FAIR if share["enabled"] is True else Order.PRIORITY
    found.leave_others("fairShare", share, ("enabled", "preemptionPolicy"), {})
    reclaim = _reclaim(share, found)
    found.leave_others("file", document, ("apiVersion", "kind", "metadata", "queues", "fairShare"), {})
    for at, given in enumerate(found.entries("file", "queues", document.get("queues"))):
        name = str(given.get("name", ""))
        source = f"queue {name or at}"
        queue = FoundQueue(source, name, str(given.get("parent") or ""), order=order)
        queue.weight = Fraction(whole(given.get("weight"), 0, found, source, "weight", 1))
        queue.priority = whole(given.get("priority"), 0, found, source, "priority", 0)
        queue.reclaim = reclaim
        if (policy := given.get("preemptionPolicy")) is not None:
            queue.preemption = POLICIES.get(str(policy))
            if queue.preemption is None:
                found.leave(source, "preemptionPolicy", f"{policy!r} is unknown; use {' or '.join(POLICIES)}")
            queue.preempts = Preempts.ALL
        queue.limit = _capacity(source, "maxCapacity", given, found, fleet_gpus)
        queue.guarantee = _capacity(source, "guaranteedCapacity", given, found, fleet_gpus)
        found.add(queue)
        found.leave_others(source, given, KNOWN, {})


def _reclaim(share: Fields, found: Found) -> Reclaim | None:
    """Return the rule for queues with a larger share."""
    policy = share.get("preemptionPolicy")
    if policy is None:
        return None
    if policy in FAIR_SHARE:
        if policy == Preemption.PREEMPT_LOWER_PRIORITY.value:
            text = (
                "becomes --reclaim FairShare: queues with a larger share give jobs back, those of lower priority first"
            )
            found.leave("fairShare", "preemptionPolicy", text)
        return Reclaim.FAIR_SHARE
    if policy != Reclaim.NEVER.value:
        found.leave("fairShare", "preemptionPolicy", f"{policy!r} is unknown; use {' or '.join(FAIR_SHARE)} or Never")
        return None
    return Reclaim.NEVER


def _capacity(source: str, at: str, given: Fields, found: Found, fleet_gpus: int) -> dict[str, int]:
    value = given.get(at)
    if isinstance(value, str) and value.strip().endswith("%"):
        try:
            milli = percent_milli(value) * fleet_gpus
        except RejectedError as error:
            found.leave(source, at, error.message)
            return {}
        found.leave(source, at, f"is {value} of the {fleet_gpus} GPUs of the fleet now; it does not follow the fleet")
        return {GPUS: milli}
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        read = found.amount(source, at, GPUS, value)
        return dict([read]) if read else {}
    return found.amounts(source, at, value)
