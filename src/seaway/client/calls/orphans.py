"""Calls about orphans: copies in clusters that no job known to Seaway accounts for."""

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
    """List copies that no job accounts for, with what they hold."""
    return get("/fleet/orphans", ORPHANS, {"cluster": cluster or None})


def remove_orphans(cluster: str, name: str = "") -> Call[OrphansRemoved]:
    """Have a cluster remove a copy that no job accounts for; without a name, all of them."""
    call = send("DELETE", f"/fleet/clusters/{part(cluster)}/orphans", REMOVED)
    return replace(call, query={"name": name or None})
