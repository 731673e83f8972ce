"""Calls about orphaned workloads, which belong to no job of Seaway."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seaway.client.call import Answer, Call, Model, get, part, send

if TYPE_CHECKING:
    from seaway.wire.orphans import OrphanList, OrphansRemoved

_WIRE = "seaway.wire.orphans"

ORPHANS: Answer[OrphanList] = Model(_WIRE, "OrphanList")
REMOVED: Answer[OrphansRemoved] = Model(_WIRE, "OrphansRemoved")


def orphans(*, cluster: str = "") -> Call[OrphanList]:
    """List orphaned workloads with their allocations."""
    return get("/fleet/orphans", ORPHANS, {"cluster": cluster or None})


def remove_orphans(cluster: str, name: str = "") -> Call[OrphansRemoved]:
    """Remove an orphaned workload from a cluster; without a name, all of them."""
    call = send("DELETE", f"/fleet/clusters/{part(cluster)}/orphans", REMOVED)
    return replace(call, query={"name": name or None})
