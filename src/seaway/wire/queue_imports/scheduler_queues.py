"""Queues in the form `queues: [{name, weight, maxCapacity, guaranteedCapacity, preemptionPolicy}]` with `fairShare`.

A capacity is a mapping of resources, a number of GPUs, or a percentage of the GPUs of the fleet.
"""

from __future__ import annotations

from fractions import Fraction

from seaway.domain.amounts import GPUS
from seaway.domain.errors import RejectedError
from seaway.domain.queues import Order
from seaway.domain.units import percent_milli
from seaway.wire.queue_imports.found import Fields, Found, FoundQueue, mapping, whole

KNOWN = ("name", "parent", "weight", "priority", "maxCapacity", "guaranteedCapacity")
REASONS = {"preemptionPolicy": "queues do not displace running jobs"}


def read_scheduler_queues(document: Fields, found: Found, fleet_gpus: int) -> None:
    """Add the queues of a document.

    Parameters
    ----------
    fleet_gpus
        Number of GPUs of the fleet, for percentages.
    """
    share = mapping(document.get("fairShare"))
    order = None if "enabled" not in share else Order.FAIR if share["enabled"] is True else Order.PRIORITY
    found.leave_others("fairShare", share, ("enabled",), REASONS)
    found.leave_others("file", document, ("apiVersion", "kind", "metadata", "queues", "fairShare"), {})
    for at, given in enumerate(found.entries("file", "queues", document.get("queues"))):
        name = str(given.get("name", ""))
        source = f"queue {name or at}"
        queue = FoundQueue(source, name, str(given.get("parent") or ""), order=order)
        queue.weight = Fraction(whole(given.get("weight"), 0, found, source, "weight", 1))
        queue.priority = whole(given.get("priority"), 0, found, source, "priority", 0)
        queue.limit = _capacity(source, "maxCapacity", given, found, fleet_gpus)
        queue.guarantee = _capacity(source, "guaranteedCapacity", given, found, fleet_gpus)
        found.add(queue)
        found.leave_others(source, given, KNOWN, REASONS)


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
