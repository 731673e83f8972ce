"""Calls about strays: copies in clusters that no job known to Seaway accounts for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seaway.client.call import Answer, Call, Model, get, part, send

if TYPE_CHECKING:
    from seaway.wire.orphans import StrayList, StraysRemoved

_WIRE = "seaway.wire.orphans"

STRAYS: Answer[StrayList] = Model(_WIRE, "StrayList")
REMOVED: Answer[StraysRemoved] = Model(_WIRE, "StraysRemoved")


def strays(*, cluster: str = "") -> Call[StrayList]:
    """List copies that no job accounts for, with what they hold."""
    return get("/fleet/strays", STRAYS, {"cluster": cluster or None})


def remove_strays(cluster: str, name: str = "") -> Call[StraysRemoved]:
    """Have a cluster remove a copy that no job accounts for; without a name, all of them."""
    call = send("DELETE", f"/fleet/clusters/{part(cluster)}/strays", REMOVED)
    return replace(call, query={"name": name or None})
